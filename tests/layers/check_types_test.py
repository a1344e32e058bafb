#!/usr/bin/python3
"""Plants pairs of types in a scratch tree and expects check_types to find those that meet, and no others."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_types import check, types_of  # noqa: E402


def offences(files):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return [message.split(": ")[0] for message in check(root)]


def names(text):
    return [name for _, name in types_of(text)]


class Pairs(unittest.TestCase):
    def test_two_structs_of_one_name_are_caught(self):
        one = "namespace pw {\nstruct Step {\n  int a = 0;\n};\n}\n"
        self.assertEqual(offences({"dsl/a.hpp": one, "rewriter/b.hpp": one}), ["rewriter/b.hpp:2"])

    def test_any_kind_of_type_and_any_file_counts(self):
        self.assertEqual(
            offences(
                {
                    "base/a.hpp": "namespace pw {\nclass A final : public B {};\n}\nnamespace pw::x { enum class C : int { a }; }\n",
                    "dsl/b.cpp": "namespace pw {\n// struct A {\nenum class A : std::uint8_t { a };\nnamespace x { union C { int a; }; }\n}\n",
                }
            ),
            ["dsl/b.cpp:3", "dsl/b.cpp:4"],
        )

    def test_templates_and_nested_types_are_types(self):
        one = "namespace pw {\ntemplate <class T, typename U = std::vector<T>>\nstruct A : B<T> {};\nstruct Outer::In {};\n}\n"
        self.assertEqual(offences({"base/a.hpp": one, "base/b.hpp": one}), ["base/b.hpp:3", "base/b.hpp:4"])

    def test_what_no_other_file_can_name_is_left_out(self):
        inner = "namespace pw {\nnamespace {\nstruct A {};\n}\nvoid f() { struct B {}; }\nstruct %s { struct C {}; };\n}\n"
        self.assertEqual(offences({"base/a.cpp": inner % "X", "base/b.cpp": inner % "Y"}), [])

    def test_other_namespaces_are_other_types(self):
        self.assertEqual(
            offences(
                {
                    "base/a.hpp": "namespace pw { struct A {}; }\n",
                    "viz/a.hpp": "namespace pw::viz { struct A {}; }\n",
                    "dsl/a.hpp": 'namespace pw { struct A; struct B {}; }\nextern "C" { struct A {}; }\n',
                }
            ),
            [],
        )

    def test_each_folder_of_tests_is_a_program_with_the_project(self):
        one, two = "namespace pw { struct A {}; }\n", "namespace pw::test { struct World {}; }\n"
        self.assertEqual(offences({"base/a.hpp": one, "tests/base/a.cpp": one}), ["tests/base/a.cpp:1"])
        self.assertEqual(offences({"base/a.hpp": one, "tests/base/w.hpp": two, "tests/dsl/w.hpp": two}), [])


class Names(unittest.TestCase):
    def test_literals_and_comments_hold_no_code(self):
        self.assertEqual(names("auto t = R\"x(struct A { \"})x\"; char c = '{'; int n = 1'000;\n/* } */ struct B {};\n"), ["B"])
        self.assertEqual(names('#define OPEN struct A { \\\n  int b;\nconst char* s = "}{\\"";\nstruct C {};\n'), ["C"])

    def test_what_only_looks_like_a_definition(self):
        self.assertEqual(names("struct A; struct B f() { return {}; }\nstd::vector<struct T> v{1};\nenum E g = {};\n"), [])

    def test_attributes_and_specialisations(self):
        self.assertEqual(names("struct [[nodiscard]] alignas(8) A {};\ntemplate <> struct std::hash<A<int>> {};\n"), ["A", "std::hash<A<int>>"])


if __name__ == "__main__":
    unittest.main()
