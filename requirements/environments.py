#!/usr/bin/env python3
"""Virtual environments with exactly the packages of a lock: `environments.py LOCK PLACE` makes one and prints its interpreter.

pip takes no file whose SHA-256 the lock does not list, and no source that it would have to build.
"""
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALL = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:"]


def environment(lock, place, call, base=sys.executable):
    """Returns the interpreter of the environment, which is made again when the lock changes; `call` runs a command or raises."""
    place = Path(place)
    python, ready = place / "bin" / "python", place / "ready"
    path = HERE / f"{lock}.txt"
    text = path.read_text(encoding="utf-8")
    if not ready.exists() or ready.read_text(encoding="utf-8") != text:
        call([base, "-m", "venv", "--clear", place])
        without = ["--no-deps"] if path.with_suffix(".overrides").exists() else []  # the lock lists less than its packages require
        call([python, *INSTALL, *without, "-r", path])
        ready.write_text(text, encoding="utf-8")
    return python


def main():
    lock, place = sys.argv[1:]
    print(environment(lock, place, lambda command: subprocess.run(command, check=True)))


if __name__ == "__main__":
    main()
