#!/usr/bin/python3
"""Checks the README: its rule is the example file, its sample outputs match the programs, and its pictures are small."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
ROOT = Path.cwd()
MOST_BYTES = 300_000  # of a picture that is checked in


def sessions(readme):
    """Yields (command, expected output) of each indented block that begins with `$`."""
    for block in re.findall(r"(?:^    .*\n)+", readme, flags=re.M):
        lines = [line[4:] for line in block.splitlines()]
        if lines[0].startswith("$ "):
            yield lines[0][2:].split(), "\n".join(lines[1:])


def main():
    readme = Path("README.md").read_text(encoding="utf-8")
    rule = Path("examples/first_rule.pwr").read_text(encoding="utf-8")
    assert f"```\n{rule}```" in readme, "the README's rule is not examples/first_rule.pwr"
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", readme)
    assert shown, "the README shows no picture"
    for picture in shown:
        data = Path(picture).read_bytes()
        assert data.startswith(b"\x89PNG") and len(data) < MOST_BYTES, f"{picture}: no PNG, or {len(data)} bytes"
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        Path(folder, "oops.pwr").write_text(rule.replace("rms_norm(r", "rms_nrom(r", 1), encoding="utf-8")
        for command, expected in sessions(readme):
            done = subprocess.run(
                [BIN / command[0], *command[1:]], cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"}
            )
            printed = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).strip().splitlines())
            assert printed == expected, f"{' '.join(command)} prints\n{printed}\nnot\n{expected}"
            ran += 1
    assert ran >= 3, f"only {ran} sample sessions were found"
    print(f"readme: {ran} sample sessions match the programs")


if __name__ == "__main__":
    sys.exit(main())
