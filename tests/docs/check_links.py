#!/usr/bin/python3
"""Fails on a broken link in a page (README.md, CHANGELOG.md, CONTRIBUTING.md, docs/**): a missing file, or a missing heading of a page."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def anchor(heading):
    """Returns the anchor of a heading as code hosts compute it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    """Returns the anchors of a page's headings."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)}


def broken(page, text):
    """Yields (line, reason) for each broken link of a page."""
    for number, line in enumerate(text.splitlines(), 1):
        for target, heading in LINK.findall(line):
            if "://" in target or not (target or heading):
                continue
            path = page.parent / target if target else page
            if not path.exists():
                yield number, f"no such file: {target}"
            elif heading and path.suffix == ".md" and heading not in anchors(path.read_text(encoding="utf-8")):
                yield number, f"no such heading: {target}#{heading}"


def main():
    page = ROOT / "README.md"
    planted = [reason for _, reason in broken(page, "[a](no.md) [b](README.md) [c](README.md#no-such) [d](README.md#try-it)")]
    assert planted == ["no such file: no.md", "no such heading: README.md#no-such"], planted
    assert anchor("What `--check` compares") == "what---check-compares"
    pages = [page, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    wrong = [f"{page.relative_to(ROOT)}:{line}: {reason}" for page in pages for line, reason in broken(page, page.read_text(encoding="utf-8"))]
    print("\n".join(wrong) or f"docs: every link of {len(pages)} pages leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
