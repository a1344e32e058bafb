#!/usr/bin/python3
"""check_requirements.py finds installations without a lock, and locks that are not whole."""
import unittest

import check_requirements as checked

HASH = "--hash=sha256:" + "0" * 64


class Installations(unittest.TestCase):
    def found(self, line):
        return len(list(checked.installations("x", line)))

    def test_without_a_lock(self):
        for line in (
            "pip install torch",
            "env/bin/pip install -q numpy torch",
            "python3 -m pip install --upgrade pip",
            '[python, "-m", "pip", "install", "-q", *packages]',
            "pip3.11 install 'numpy==2.4.6'",
            "uv pip install egglog",
            "    !pip install torch",
            "pip download torch",
            "python -m pip wheel --no-deps somebody",
        ):
            self.assertEqual(self.found(line), 1, line)

    def test_with_a_lock_or_a_file(self):
        for line in (
            '["-m", "pip", "install", "-q", "--require-hashes", "-r", lock]',
            "env/bin/pip install build/wheel/piecewise_graphs-1.whl",
            'cls.bin("pip", "install", "--no-index", cls.wheel)',
            "pip install 'piecewise-graphs[arrays]'",
            "pip is installed",
        ):
            self.assertEqual(self.found(line), 0, line)


class Locks(unittest.TestCase):
    def faults(self, text):
        return [number for number, _ in checked.faults_of_lock(text)]

    def test_whole(self):
        self.assertEqual(self.faults(f"# made\na==1.0 \\\n    {HASH} \\\n    {HASH}\nb-c==2 \\\n    {HASH}\n"), [])

    def test_faults_have_their_lines(self):
        self.assertEqual(self.faults(f"a==1.0 \\\n    {HASH}\nb>=2 \\\n    {HASH}\n"), [3])
        self.assertEqual(self.faults("a==1.0\n"), [1])
        self.assertEqual(self.faults(f"a==1.* {HASH}\nb==1 --hash=md5:00\n"), [1, 2])
        self.assertEqual(self.faults("--find-links somewhere\n"), [1, 1])

    def test_names_compare_as_an_index_does(self):
        self.assertEqual(checked.names("Scikit_Build.Core==1\n# x\nnumpy\n"), {"scikit-build-core", "numpy"})

    def test_what_builds_the_wheel_is_locked(self):
        project = '[build-system]\nrequires = ["a==1", "b==2"]\n'
        self.assertEqual(list(checked.build_requirements(project, "a==1 \\\nb==2 \\\n")), [])
        self.assertEqual(len(list(checked.build_requirements(project, "a==1 \\\nb==3 \\\n"))), 1)


if __name__ == "__main__":
    unittest.main()
