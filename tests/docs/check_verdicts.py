#!/usr/bin/python3
"""Checks that docs/verdicts.md matches `pwr prove` for the library's rules; PW_UPDATE_GOLDEN=1 rewrites it."""
import json
import os
import subprocess
import sys
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
PAGE = Path("docs/verdicts.md")
WORDS = {
    "same_bits": "same bits",
    "rounds": "rounds differently",
    "differs_only_for": "differs only for",
    "may_overflow": "differs where it may overflow",
    "refuted": "refuted",
    "unknown": "unknown",
    "cannot_run": "cannot run",
    "no_instance": "no instance",
}
SPECIALS = {"nan": "NaN", "infinity": "infinity", "zero_sign": "the sign of zero"}
HEAD = """# Verdicts on the library

The verdict on each rule of the library, and its evidence; [proof.md](proof.md) explains the words. Each row of a table is a rule of its own. The page is
made by `PW_UPDATE_GOLDEN=1 tests/docs/check_verdicts.py`, and a test compares it.

"""


def pwr(*args):
    done = subprocess.run([BIN / "pwr", "--format", "json", *args], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        sys.exit(f"{' '.join(args)} prints no JSON: {error}\n{done.stderr}")


def files():
    """The library's files with rules, by name; those that only gather others have none."""
    return sorted(path for path in Path("rules").glob("*.pwr"))


def verdict(row):
    word = WORDS[row["verdict"]]
    if row["only_for"] and row["verdict"] == "differs_only_for":
        word += " " + ", ".join(SPECIALS[name] for name in row["only_for"])
    return word


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def why(row):
    """Why there is no proof, or what it leaves out."""
    if row["verdict"] in ("refuted", "may_overflow"):
        return cell(row["reason"].partition("\n")[0])
    left = row["left_to_show"]
    return "`" + cell(left).replace("`", "'") + "`" if left else ""


def rules_of(file):
    """The names of the rules of a file and of those that it imports, with the file that defines each."""
    rows = pwr("check", "--no-analysis", str(file))
    return {row["name"]: Path(row["place"].partition(":")[0]).name for row in rows if row["kind"] == "rule"}


def sections():
    """Lists the verdicts by the file that defines the rule. Each rule is judged once, in the file with the most rules."""
    places = {file: rules_of(file) for file in files()}
    proved = {}
    for file in sorted(places, key=lambda file: (-len(places[file]), file)):
        new = [name for name in places[file] if name not in proved]
        for row in pwr("prove", "-r", str(file), *new) if new else []:
            assert not row["contradiction"], row
            assert row["verdict"] != "refuted", row
            proved.setdefault(row["rule"], row)
    homes = {name: home for file in places for name, home in places[file].items()}
    by_file = {}
    for name, home in homes.items():
        if name in proved:
            by_file.setdefault(home, []).append(proved[name])
    return by_file


def page():
    by_file = sections()
    rows = [row for some in by_file.values() for row in some]
    done = [
        row for row in rows if row["known_by"] == "proof" and row["verdict"] in ("same_bits", "rounds", "differs_only_for") and not row["uncovered"]
    ]
    reals = sum(row["verdict"] == "rounds" for row in done)
    out = HEAD + f"{len(done)} of {len(rows)} rules are proved, {reals} of these over the reals.\n"
    for file in sorted(by_file):
        out += f"\n## rules/{file}\n\n| rule | verdict | known by | why not |\n|---|---|---|---|\n"
        for row in by_file[file]:
            known = row["known_by"] or ""
            out += f"| `{row['rule']}` | {verdict(row)} | {known} | {why(row)} |\n"
    return out


def main():
    made = page()
    if os.environ.get("PW_UPDATE_GOLDEN"):
        PAGE.write_text(made, encoding="utf-8")
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made:
        print("docs/verdicts.md is not what is proved; read the difference, then PW_UPDATE_GOLDEN=1 tests/docs/check_verdicts.py")
        return 1
    print(f"docs: verdicts.md is up to date, {made.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
