#!/usr/bin/python3
"""Checks every ```pwr block of the documentation as a file, and runs its tests."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()


def blocks(text):
    """Yields (line, content) of each fenced block marked `pwr`."""
    for found in re.finditer(r"^```pwr\n(.*?)^```$", text, flags=re.M | re.S):
        yield text.count("\n", 0, found.start()) + 1, found.group(1)


def main():
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        for page in sorted(Path("docs").glob("*.md")):
            for line, content in blocks(page.read_text(encoding="utf-8")):
                file = Path(folder, f"{page.stem}-{line}.pwr")
                file.write_text(content, encoding="utf-8")
                command = [BIN / "pwr", "test" if "\ntest " in content else "check", file]
                done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
                assert done.returncode == 0, f"{page}:{line}: the example fails\n{done.stdout}{done.stderr}"
                ran += 1
    assert ran >= 1, "no example was found"
    print(f"docs: {ran} examples check and pass")


if __name__ == "__main__":
    sys.exit(main())
