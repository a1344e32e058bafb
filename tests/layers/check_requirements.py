#!/usr/bin/python3
"""Fails on a script that installs Python packages without a lock, and on a lock that lacks a version or a digest.

    check_requirements.py [ROOT]     prints `file:line: reason` for each offence; exit 1 when there are any
"""
import re
import subprocess
import sys
from pathlib import Path

SCRIPTS = {"", ".py", ".sh", ".md", ".txt", ".cmake", ".toml", ".yml", ".ipynb"}
SELF = "tests/layers/check_requirements"
# `pip install`, `uv pip install`, and the words of a list: "pip", "install".
INSTALLS = re.compile(r"\b(pip[\d.]*|pipx|easy_install|conda)\b[\"',\s]+(-[-\w]+[\"',\s]+)*(install|download|wheel)\b")
# An installation that takes nothing by name from an index: a lock, no index, a file that was built here.
LOCKED = re.compile(r"--require-hashes|--no-index|--no-deps.*--no-build-isolation|\.whl\b|piecewise-graphs|pip wheel \.")


def installations(relative, text):
    """Yields (line number, reason) for each installation that no lock describes."""
    for number, line in enumerate(text.splitlines(), 1):
        if INSTALLS.search(line) and not LOCKED.search(line):
            yield number, "installs packages without a lock: see requirements/README.md"


def faults_of_lock(text):
    """Yields (line number, reason) for each requirement without a version or without a digest."""
    logical = re.sub(r"\\\n", lambda found: "\0", text)
    number = 1
    for line in logical.split("\n"):
        words = line.replace("\0", " ").split()
        if words and not words[0].startswith("#"):
            if not re.fullmatch(r"[A-Za-z0-9._-]+==[^=*\s]+", words[0]):
                yield number, f"`{words[0]}` does not name one version"
            if not re.search(r"--hash=sha256:[0-9a-f]{64}(\s|$)", " ".join(words)):
                yield number, f"`{words[0]}` has no SHA-256"
        number += 1 + line.count("\0")


def names(text):
    """The packages of a list or a lock, as an index compares them."""
    found = re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)", text, re.M)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def files_of(root):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def check(root):
    messages = []

    def add(name, faults):
        messages.extend(f"{name}:{number}: {reason}" for number, reason in faults)

    for name in files_of(root):
        path = root / name
        if path.suffix not in SCRIPTS or name.startswith(SELF) or path.is_symlink() or not path.is_file():
            continue
        add(name, installations(name, path.read_text(encoding="utf-8", errors="replace")))
    lists = sorted((root / "requirements").glob("*.in"))
    if not lists:
        messages.append("requirements/: there is no list of packages")
    for path in lists:
        lock = path.with_suffix(".txt")
        name = lock.relative_to(root).as_posix()
        if not lock.exists():
            messages.append(f"{name}: there is no lock of {path.name}")
            continue
        text = lock.read_text(encoding="utf-8")
        add(name, faults_of_lock(text))
        for missing in sorted(names(path.read_text(encoding="utf-8")) - names(text)):
            messages.append(f"{name}: lacks {missing} of {path.name}")
    add(
        "pyproject.toml",
        build_requirements((root / "pyproject.toml").read_text(encoding="utf-8"), (root / "requirements/wheel.txt").read_text(encoding="utf-8")),
    )
    return messages


def build_requirements(project, lock):
    """Yields an offence for each build dependency of the wheel whose version differs from the lock's."""
    number = project[: project.index("[build-system]")].count("\n") + 1
    listed = re.search(r"^requires = \[([^\]]*)\]", project, re.M)[1]
    for requirement in re.findall(r'"([^"]+)"', listed):
        if not re.search(rf"^{re.escape(requirement)}\s", lock, re.M):
            yield number, f"`{requirement}` is not a version of requirements/wheel.txt"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    messages = check(root)
    print("\n".join(messages) or "requirements: each installation has a lock, each lock its digests")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
