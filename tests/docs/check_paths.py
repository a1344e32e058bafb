#!/usr/bin/python3
"""Checks that the files named in pages for developers exist, and that the glossary's words are declared in the files it names.

The pages are docs/architecture.md, docs/glossary.md, and CONTRIBUTING.md. Every path in backquotes must exist; `*` matches any text, `{a,b}`
either text, and NAME is chosen by the reader. After `Name`, `path` in the glossary, the file must contain the name. Names in a table cell
before a cell of paths must occur in one of these files.
"""
import itertools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md"]
ENDINGS = "hpp|cpp|cu|py|pwr|pwg|md|txt|js|css|cmake|json"
PATH = re.compile(r"`([\w{},*.-]+(?:/[\w{},*.-]+)+\.(?:%s))`" % ENDINGS)
DECLARED = re.compile(r"`(\w+)`, `([\w./-]+)`")


def expanded(path):
    """`a/{b,c}.d` is a/b.d and a/c.d."""
    parts = [part[1:-1].split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^}]*\})", path)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def missing(text, root):
    """Paths in the text that no file has, but for those that the reader makes."""
    for path in sorted(set(PATH.findall(text))):
        for one in expanded(path):
            if not one.startswith("build/") and "NAME" not in one and not any(root.glob(one)):
                yield f"no such file: {one}"


def names(cell):
    """The names of a cell that holds nothing but names (or paths) in backquotes."""
    found = re.findall(r"`([^`]+)`", cell)
    return found if re.fullmatch(r"\s*`[^`]+`(, `[^`]+`)*\s*", cell) else []


def misplaced(text, root):
    """Yields names in a table that none of the files in their row contains."""
    for row in re.findall(r"^\|(.+)\|$", text, flags=re.M):
        cells = row.split(" | ")
        for cell, place in zip(cells, cells[1:]):
            paths = [root / path for path in names(place)]
            if not paths or not all(path.is_file() for path in paths):
                continue
            there = "".join(path.read_text(encoding="utf-8") for path in paths)
            for name in names(cell):
                if not re.search(rf"\b{re.escape(name.split('::')[-1])}\b", there):
                    yield f"`{name}` is in none of {', '.join(names(place))}"


def undeclared(glossary, root):
    for line in glossary.splitlines():
        for name, path in DECLARED.findall(line):
            file = root / path
            if file.is_file() and not re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")):
                yield f"{path} does not declare `{name}`"


def unsorted(glossary):
    """Yields neighbouring rows in the wrong order, for each table."""
    for table in re.findall(r"(?:^\|.*\n)+", glossary, flags=re.M):
        words = [row.group(1).lower().replace("-", " ") for row in re.finditer(r"^\| ([^|]+?) \|", table, flags=re.M)][1:]
        yield from (f"`{after}` comes after `{before}`" for before, after in zip(words, words[1:]) if before >= after)


def main():
    assert list(missing("`graph/{graph,no_such}.hpp` `dsl/check/*.cpp`", ROOT)) == ["no such file: graph/no_such.hpp"]
    assert list(misplaced("| x | `NoSuchName` | `graph/graph.hpp` | y |", ROOT)), "the check cannot fail"
    assert list(undeclared("| x | `NoSuchName`, `graph/graph.hpp` |", ROOT)), "the check cannot fail"
    assert list(unsorted("| word |\n| b |\n| a |\n\n| word |\n| a |\n")) == ["`a` comes after `b`"]
    wrong, paths = [], 0
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        paths += len(PATH.findall(text))
        wrong += [f"{page}: {reason}" for reason in [*missing(text, ROOT), *misplaced(text, ROOT)]]
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    wrong += [f"docs/glossary.md: {reason}" for reason in [*undeclared(glossary, ROOT), *unsorted(glossary)]]
    print("\n".join(wrong) or f"docs: {paths} paths named for developers exist, {len(DECLARED.findall(glossary))} words are declared there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
