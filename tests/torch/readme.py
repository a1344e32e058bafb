#!/usr/bin/env python3
"""The README's lines for PyTorch run unchanged, and print the output in their comment."""
import contextlib
import io
import re
import sys
from pathlib import Path


def main():
    blocks = re.findall(r"^```python\n(.*?)^```$", Path("README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    block = next(block for block in blocks if "torch.compile" in block)
    expected = re.search(r"^print\(.*#\s*(.*)$", block, flags=re.M)[1]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(block, {})  # pylint: disable=exec-used
    assert said.getvalue().strip() == expected, f"it prints {said.getvalue()!r}, not {expected!r}"
    print("readme: the lines for PyTorch print what they say")


if __name__ == "__main__":
    sys.exit(main())
