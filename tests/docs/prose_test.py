#!/usr/bin/python3
"""Counts signs of poor English in documentation and source text, for each folder, against a baseline that only falls.

The counts are those of tests/docs/prose_baseline.json. A count above its baseline fails the test. `prose_test.py --update` lowers the
baseline to the current counts, adds new folders, and drops folders that no longer exist; it never raises a count.
`prose_test.py --list FOLDER [SIGN]` prints every occurrence in a folder.
"""
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASELINE = ROOT / "tests/docs/prose_baseline.json"
SKIPPED = {"build", "node_modules", "__pycache__", "third_party", "shared"}
TEXT = {".md", ".ipynb"}
CODE = {".hpp", ".h", ".cpp", ".cu", ".py", ".js", ".pwr"}
LONGEST = 28  # words at the 90th percentile of a docs folder

SIGNS = {
    "is no": r"(?<![Tt]here )(?<!\w-)\b(?:is|are) (?:no|none)\b(?! longer| \w+er than| more than| less than)",
    "programs that speak": r"\b(?:says|said|tells|told|asks|asked|knows)\b",
    "behind, beside, in front of": r"\b(?:behind|beside|in front of)\b",
    "loan words": r"\b(?:reckon\w*|sought|in vain|mend(?:ed|s|ing)?|apart(?! from)|by itself|let stand|anew|dear|a press)\b",
    "vague verbs": r"\b(?:is|are) (?:looked at|seen to|taken|met)\b|\b(?:stands|lies|goes by|comes to)\b",
}
OPENINGS = re.compile(r"(?:Of|What|As|By|Those|The same|Whether it)\b")
SIGN_PATTERNS = {name: re.compile(pattern, 0 if name == "is no" else re.I) for name, pattern in SIGNS.items()}  # Python has `is None`


def files():
    """The text and source files of the tree, in order, except this test."""
    for folder, below, names in os.walk(ROOT):
        below[:] = sorted(name for name in below if name not in SKIPPED and not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix in TEXT | CODE and path != Path(__file__).resolve():
                yield path.relative_to(ROOT)


def folder_of(path):
    """The folder that a file is counted in: top-level, or one below for documentation."""
    parts = path.parts[:-1]
    return "/".join(parts[: 2 if parts[:1] == ("docs",) else 1]) or "."


def prose_of(path, text, quoted=False):
    """The words of a page without its code blocks; the whole text of a source file. `quoted` keeps code within lines."""
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    if path.suffix not in TEXT:
        return text
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    text = re.sub(r"(?:^|\n)(?: {4}[^\n*-][^\n]*\n)+", "\n", text)
    text = text if quoted else re.sub(r"`[^`]+`", "x", text)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def comments_of(path, text):
    """The comments and docstrings of a source file as paragraphs."""
    if path.suffix == ".py":
        marked = re.sub(r'"""(.*?)"""', lambda found: "\n\n" + "".join(f"# {line.strip()}\n" for line in found[1].splitlines()), text, flags=re.S)
        found = (re.match(r"\s*#(?!!)(.*)", line) for line in marked.splitlines())
    else:
        found = (re.match(r"(?:[^\"]|\"[^\"]*\")*?(?<!:)//+<?(.*)", line) for line in text.splitlines())
    return "\n".join(comment[1].strip() if comment else "" for comment in found)


def spoken(prose):
    """The sentences of a page, without its tables; a list's item ends one."""
    prose = re.sub(r"^ *\|.*\|$|^#+ .*$", "", prose, flags=re.M)
    prose = re.sub(r"^ *(?:[*-]|\d+\.) ", "\n\n", prose, flags=re.M)
    for part in re.split(r"\n\s*\n|(?<=[.!?])[*)]*\s+(?=[A-Z*_(\[]|x\b)", prose):
        if len(words_of(part)) > 2:
            yield " ".join(part.split())


def words_of(sentence):
    return re.findall(r"\w[\w'’.,/×-]*", sentence)


def sentences(prose):
    """The numbers of words of the sentences of a page."""
    yield from (len(words_of(sentence)) for sentence in spoken(prose))


def docstrings(path, text):
    """The first words of the comments that document a declaration."""
    if path.suffix in {".hpp", ".h"}:
        yield from re.findall(r"(?<!///)(?:^|\n)(?!\s*///)[^\n]*\n\s*/// ?([^\n]*)|^/// ?([^\n]*)", text)
    elif path.suffix == ".py":
        yield from ((found, "") for found in re.findall(r'^\s*"""([^\n"]+)', text, flags=re.M))


def bad_openings(path, text):
    return [first or second for first, second in docstrings(path, text) if OPENINGS.match(first or second)]


def p90(lengths):
    ordered = sorted(lengths)
    return ordered[(len(ordered) * 9 - 1) // 10] if ordered else 0


def counts():
    """The counts of each folder, by sign."""
    found, lengths = {}, {}
    for path in files():
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        prose = prose_of(path, text)
        row = found.setdefault(folder_of(path), dict.fromkeys([*SIGNS, "docstring openings"], 0))
        for name, pattern in SIGN_PATTERNS.items():
            row[name] += len(pattern.findall(prose))
        row["docstring openings"] += len(bad_openings(path, text))
        if path.suffix in TEXT and path.parts[0] in {"docs", "notebooks"}:
            lengths.setdefault(folder_of(path), []).extend(sentences(prose))
    for folder, words in lengths.items():
        found[folder]["sentence p90"] = p90(words)
    return found


def exceeding(now, baseline):
    """Each count above its baseline; a folder without one starts at zero, with sentences of the usual length."""
    for folder, row in now.items():
        for sign, count in row.items():
            most = baseline.get(folder, {}).get(sign, LONGEST if sign == "sentence p90" else 0)
            if count > most:
                yield f"{folder}: {sign}: {count}, at most {most} (--list '{folder}' shows them)"


def lowered(now, baseline):
    """The baseline with every count that fell, and with the folders that exist now."""
    least = lambda folder, sign, count: min(count, baseline.get(folder, {}).get(sign, count))
    return {folder: {sign: least(folder, sign, count) for sign, count in row.items()} for folder, row in now.items()}


def show(folder, signs):
    for path in files():
        if folder_of(path) != folder:
            continue
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(prose_of(path, text).splitlines(), 1):
            for name in signs or SIGNS:
                if name in SIGN_PATTERNS and SIGN_PATTERNS[name].search(line):
                    print(f"{path}:{number}: {name}: {line.strip()[:160]}")
        for opening in bad_openings(path, text):
            print(f"{path}: docstring: {opening}")


def check_itself():
    """The rules find planted mistakes, and accept correct sentences."""
    page = Path("docs/x.md")
    bad = "This is no graph. The tool says so. It is behind a node. It is sought. The node stands there.\n"
    assert [len(p.findall(prose_of(page, bad))) for p in SIGN_PATTERNS.values()] == [1, 1, 1, 1, 1], "a sign is not found"
    good = "There is no GPU. It is no longer used.\n\n```\nsaid\n```\n\n    said\n\nSee `said`.\n"
    assert not any(p.search(prose_of(page, good)) for p in SIGN_PATTERNS.values()), "correct text is counted"
    assert list(sentences("One two three four. Five six seven.\n\n* Eight nine ten\n")) == [4, 3, 3]
    header = "int a;\n/// Of the block.\nint b;\n/// Returns one.\n/// Of which it is.\nint c;\n"
    assert bad_openings(Path("x.hpp"), header) == ["Of the block."], "an opening is not found"
    assert list(exceeding({"a": {"is no": 2}}, {"a": {"is no": 1}})) and not list(exceeding({"a": {"is no": 1}}, {"a": {"is no": 1}}))
    assert lowered({"a": {"is no": 2}}, {"a": {"is no": 1}, "b": {}}) == {"a": {"is no": 1}}, "a baseline rises"


def main():
    check_itself()
    if sys.argv[1:2] == ["--list"]:
        return show(sys.argv[2], sys.argv[3:])
    now = counts()
    baseline = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    if sys.argv[1:] == ["--update"]:
        BASELINE.write_text(json.dumps(lowered(now, baseline), indent=1) + "\n", encoding="utf-8")
        return 0
    wrong = list(exceeding(now, baseline))
    below = sum(count < baseline.get(folder, {}).get(sign, 0) for folder, row in now.items() for sign, count in row.items())
    print("\n".join(wrong) or f"prose: no count of {len(now)} folders is above its baseline; {below} are below it (--update lowers it)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
