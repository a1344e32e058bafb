#!/usr/bin/python3
"""Checks the rules of .editorconfig for every text file: UTF-8, LF, no trailing spaces, no tabs before text, a newline at the end."""
import subprocess
import sys
import tempfile
from pathlib import Path

BINARY = {".png", ".safetensors"}
AS_GIVEN = (
    "tests/graph/fixtures/",
    "tests/dsl/fixtures/",
    "tests/import_programs/",
    "bench/peers/",
    "tests/fail/syntax.pwr",
)  # texts of other programs; one that ends early


def faults(name, data):
    """Yields `line: reason`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"1: no UTF-8: {error.reason}"
        return
    if text and not text.endswith("\n"):
        yield f"{text.count(chr(10)) + 1}: the last line does not end"
    if text.endswith("\n\n"):
        yield f"{text.count(chr(10))}: empty lines at the end"
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\r"):
            yield f"{number}: ends with CR"
        elif line != line.rstrip():
            yield f"{number}: spaces at the end"
        if line.startswith("\t"):
            yield f"{number}: a tab"


def check(root):
    tracked = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        print("SKIPPED: this is not a clone, so its files are not known", file=sys.stderr)
        sys.exit(77)
    for name in sorted(set(tracked.stdout.split("\0")) - {""}):
        path = Path(root, name)
        if path.suffix in BINARY or name.startswith(AS_GIVEN) or path.is_symlink() or not path.is_file():
            continue
        for fault in faults(name, path.read_bytes()):
            yield f"{name}:{fault}"


def self_check():
    wrong = [b"a \n", b"a\r\n", b"a", b"a\n\n", b"\ta\n", b"\xff\n"]
    assert all(list(faults("x", data)) for data in wrong), "the check cannot fail"
    assert not list(faults("x", "é\n  b\n".encode())) and not list(faults("x", b""))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        Path(folder, "new.txt").write_text("a \n")
        assert list(check(folder)) == ["new.txt:1: spaces at the end"]


def main():
    self_check()
    messages = list(check(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(messages) or "text: as .editorconfig requires")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
