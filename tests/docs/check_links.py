#!/usr/bin/python3
"""Fails on a link in a page (README.md, CHANGELOG.md, CONTRIBUTING.md, docs/**) to a file that is not there."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def main():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = []
    for page in pages:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for target in LINK.findall(line):
                if "://" not in target and not (page.parent / target).exists():
                    broken.append(f"{page.relative_to(ROOT)}:{number}: no such file: {target}")
    print("\n".join(broken) or f"docs: every link of {len(pages)} pages leads somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
