#!/usr/bin/python3
"""Checks that each diagnostic code is used only in the part that owns its range in docs/codes.md."""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "layers"))
from check_layers import STACK  # noqa: E402

# The rooms above these pass on the codes of those below.
FOLDERS = STACK[: STACK.index("pipeline")] + ["lsp", "serve", "cli"]
SAMPLES = {
    "base/diagnostic.hpp",
    "base/diagnostic_codes.hpp",
    "base/diagnostic_codes.cpp",
    "cli/commands/explain.cpp",
    "cli/help/diagnostic_examples.cpp",
    "cli/help/rule_examples.cpp",
}  # show what codes look like, and what they mean


def owners():
    """Returns [(first, last, {folders})] from the rows of the table."""
    rows = []
    for line in Path("docs/codes.md").read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| PW(\d+)(x*)(?:–PW(\d+)(x*))? \| ([^|]*) \|", line)
        if row:
            first = int(row[1] + "0" * len(row[2]))
            last = int((row[3] or row[1]) + "9" * len(row[4] if row[3] else row[2]))
            rows.append((first, last, set(re.findall(r"`([^`]+)`", row[5]))))
    return rows


def misplaced(files, rows):
    for path, text in files:
        for code in sorted(set(re.findall(r"PW(\d{4})", text))):
            allowed = set().union(*[parts for first, last, parts in rows if first <= int(code) <= last])
            part = path.split("/")[0]
            if part not in allowed:
                yield f"{path}: PW{code} belongs to {', '.join(sorted(allowed)) or 'nobody'}"


def main():
    rows = owners()
    assert list(misplaced([("viz/x.cpp", "PW1101")], rows)), "the check cannot fail"
    files = [(str(p), p.read_text(encoding="utf-8")) for folder in FOLDERS for p in sorted(Path(folder).rglob("*.[ch]pp")) if str(p) not in SAMPLES]
    wrong = list(misplaced(files, rows))
    print("\n".join(wrong) or f"codes: {len(files)} files, each code in its part")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
