"""Writes a compilation database with an entry for each source, from one with an entry for each unity file.

clang-tidy takes a source's command out of compile_commands.json; for a source that is not in there it guesses by the name, and
then a header that only the source's own target sees is not found. See https://clang.llvm.org/docs/JSONCompilationDatabase.html.

    compile_commands.py BUILD OUT    reads BUILD/compile_commands.json, writes OUT/compile_commands.json
"""

import json
import pathlib
import re
import sys

INCLUDED = re.compile(r'^#include "(/[^"]+)"', re.MULTILINE)


def main() -> int:
    build, out = map(pathlib.Path, sys.argv[1:])
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unity = pathlib.Path(entry["file"])
        sources = INCLUDED.findall(unity.read_text()) if "/Unity/" in entry["file"] else [entry["file"]]
        entries += [entry | {"file": source, "command": entry["command"].replace(str(unity), source)} for source in sources]
    out.mkdir(parents=True, exist_ok=True)
    (out / "compile_commands.json").write_text(json.dumps(entries, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
