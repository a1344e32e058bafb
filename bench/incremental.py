#!/usr/bin/python3
"""Rewriting again after an edit: runs pw_bench_incremental and puts what it prints into the part of the page for this processor.

incremental.py PROGRAM [--output FILE]     exit 1 when something that must hold does not
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench" / "peers"))

from environment import write_section  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/incremental.md")
    args = parser.parse_args()
    done = subprocess.run([args.program], capture_output=True, text=True, timeout=600, check=False)
    print(done.stdout + done.stderr, end="")
    if done.returncode in (0, 1):
        write_section(args.output, "Rewriting after an edit", done.stdout.splitlines())
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
