#!/usr/bin/python3
"""Checks that docs/ops.md equals the output of `pwr ops --format md`; PW_UPDATE_GOLDEN=1 rewrites it."""
import os
import subprocess
import sys
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
PAGE = Path("docs/ops.md")


def main():
    done = subprocess.run([BIN / "pwr", "ops", "--format", "md"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("# Ops"), done.stdout[:200]
    if os.environ.get("PW_UPDATE_GOLDEN"):
        PAGE.write_text(done.stdout, encoding="utf-8")
    if PAGE.read_text(encoding="utf-8") != done.stdout:
        print("docs/ops.md does not match the library; regenerate it: pwr ops --format md > docs/ops.md")
        return 1
    print(f"docs: ops.md is up to date, {done.stdout.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
