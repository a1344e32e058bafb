#!/usr/bin/python3
"""`pwr equal` from outside: exit codes, the node where graphs part, relations that do not fit."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
SINGLE = "graph {\n  in x: f32[4, 8], w: f32[8, 16], v: f32[16, 8]\n  y = mm(relu(mm(x, w)), v) + x\n  out y\n}\n"
RANK = (
    "graph {\n  in x: f32[4, 8], w: f32[8, 8], v: f32[8, 8]\n  p = mm(relu(mm(x, w)), v)\n"
    '  m = all_reduce(p){group = "tp"}\n  y = m + x\n  out y\n}\n'
)
RELATION = "w = gathered(w){dim = 1}  // columns\nv = gathered(v){dim = 0}\n"


class Equal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.single, self.rank = self.file("single.pwg", SINGLE), self.file("rank.pwg", RANK)
        self.relation = self.file("relation.txt", RELATION)

    def file(self, name, text):
        (self.path / name).write_text(text, encoding="utf-8")
        return name

    def equal(self, *arguments, code=0):
        done = subprocess.run([BIN / "pwr", "equal", *arguments], cwd=self.path, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_two_ranks_are_one_device(self):
        done = self.equal(self.single, self.rank, self.rank, "--relation", self.relation)
        self.assertEqual(done.stdout, "`y` is replicated as `y`: proved\n")
        self.assertIn("a different order", done.stderr)
        answer = json.loads(self.equal(self.single, self.rank, self.rank, "--relation", self.relation, "--format", "json").stdout)
        self.assertEqual((answer["verdict"], answer["known_by"]), ("rounds", "proof"))
        self.assertEqual(answer["equal_by_name"], [{"input": "x"}])

    def test_the_node_where_they_part(self):
        wrong = self.file("wrong.pwg", RANK.replace("y = m + x", "y = p + x"))
        done = self.equal(self.single, wrong, wrong, "--relation", self.relation, code=1)
        self.assertIn("they first differ at `y` = add", done.stdout)
        self.assertIn("an all_reduce is missing", done.stdout)
        self.equal(self.single, self.rank, self.rank, code=1)

    def test_a_graph_is_itself_bit_by_bit(self):
        answer = json.loads(self.equal(self.single, self.single, "--format", "json").stdout)
        self.assertEqual((answer["verdict"], answer["rows"][0]["verdict"]), ("same_bits", "proved"))

    def test_a_relation_that_does_not_fit(self):
        for text in ("w = gathered(w){dim = 0}\n", "q = replicated(q)\n", "w = sliced(w)\n", "claim z = replicated(y)\n"):
            with self.subTest(text):
                done = self.equal(self.single, self.rank, self.rank, "--relation", self.file("bad.txt", text), code=2)
                self.assertIn("PW1419", done.stderr)
        self.assertIn("absent", self.equal(self.single, self.rank, "--relation", "absent.txt", code=3).stderr)


if __name__ == "__main__":
    unittest.main()
