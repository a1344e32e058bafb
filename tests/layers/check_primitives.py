#!/usr/bin/python3
"""Ops are compared by their Primitive: no C++ outside import/ compares a string with a name of graph/ops/primitive.hpp.

An exception is a line whose string is not an op: the value of an attribute, or a word of the language.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = "graph/ops/primitive.hpp"
SKIPPED = {"build", "tests", "bench", "import"}
# A file, and what its strings name.
EXCEPTIONS = {
    "backends/eager/indexing.cpp": "how index_put joins elements",
    "backends/host_arguments.cpp": "a word of Python: slice",
    "backends/interpreter/indexing.cpp": "how index_put joins elements",
    "dsl/check/guard_kinds.cpp": "a function of guards: constant",
    "graph/build.cpp": "a function of types: select",
    "graph/infer/evaluate_guard.cpp": "a function of guards: constant",
    "graph/text/type_text.cpp": "a function of SymPy: floor",
    "proof/equal/transfer_collectives.cpp": "how a collective joins elements",
    "rewriter/engine/pass/pass_rule.cpp": "a function of guards: constant",
    "verify/samples/boundaries.cpp": "a function of guards: constant",
}
MOST = 10


def names(rows):
    return set(re.findall(r"\bX\((\w+)", rows)) - {"name"} | {"cast"}


def comparisons(text, primitives):
    """Yields the line of each comparison with a primitive's name, and of each search for an op by one."""
    name = "|".join(sorted(primitives))
    pattern = re.compile(rf'(?<!format )(?<!extension )[!=]= ?"(?:{name})"|"(?:{name})" ?[!=]=|\bops\.find\("(?:{name})"\)')
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.search(line.split("//")[0]):
            yield number, line.strip()


def sources(root):
    for path in sorted([*root.rglob("*.cpp"), *root.rglob("*.hpp")]):
        relative = path.relative_to(root)
        if relative.parts[0] not in SKIPPED and not relative.parts[0].startswith("."):
            yield relative.as_posix(), path.read_text(encoding="utf-8")


def check_itself():
    rows = names("#define PW_A(X) \\\n  X(add, 2) \\\n  X(mm)\n")
    assert rows == {"add", "mm", "cast"}, rows
    bad = 'if (op.name == "mm") x;\nreturn "add" != op;\nops.find("cast");\nop == "relu"; // == "mm"\nformat == "mm"\n'
    assert [n for n, _ in comparisons(bad, rows)] == [1, 2, 3]


def main():
    check_itself()
    primitives = names((ROOT / ROWS).read_text(encoding="utf-8"))
    found = {name: list(comparisons(text, primitives)) for name, text in sources(ROOT)}
    wrong = [f"{name}:{number}: {line}" for name, hits in found.items() if name not in EXCEPTIONS for number, line in hits]
    wrong += [f"{name}: an exception that nothing needs" for name in EXCEPTIONS if not found.get(name)]
    wrong += [f"{len(EXCEPTIONS)} exceptions, at most {MOST}"] * (len(EXCEPTIONS) > MOST)
    print("\n".join(wrong) or f"primitives: {len(primitives)} names, none compared outside import/, {len(EXCEPTIONS)} exceptions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
