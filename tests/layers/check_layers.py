#!/usr/bin/python3
"""Fails on an include that goes up the layers, on an outside library where it must not be, and on a file header that only repeats names.

    check_layers.py [ROOT]     prints `file:line: reason` for each offence; exit 1 when there are any
"""
import re
import sys
from pathlib import Path

# What each folder may include; every folder may include itself. Lowest first.
STACK = ["base", "graph", "dsl", "rewriter", "splitter", "backends", "runtime", "proof", "discover", "verify"]
ALLOWED = {folder: set(STACK[: i + 1]) for i, folder in enumerate(STACK)}
ALLOWED["viz"] = set(STACK[: STACK.index("backends")]) | {"viz"}
ALLOWED["pipeline"] = set(STACK) | {"viz", "pipeline"}
ALLOWED["cli"] = set(STACK) | {"viz", "pipeline", "cli"}
ALLOWED["python"] = set(STACK) | {"viz", "pipeline", "python"}
ALLOWED["bench"] = set(STACK) | {"viz", "bench"}

# The outside library an include names, and the only files that may name it.
LIBRARIES = [
    ("Boost", r"boost/", r"dsl/grammar[^/]*\.cpp|graph/import/[^/]*\.cpp"),
    ("Eigen", r"(Eigen|unsupported/Eigen)/", r"(backends/.*|bench/eigen)\.cpp"),
    ("JSON", r"nlohmann/", r".*_json\.cpp"),
    ("TOML", r"toml\+\+/", r"cli/config_value\.cpp"),
    ("Graphviz", r"(graphviz/.*|gvc\.h|cgraph\.h)", r"viz/.*\.cpp"),
    ("cpp-httplib", r"httplib\.h", r"cli/serve/http_module\.cpp"),
    ("libzip", r"zip\.h", r"base/zip\.cpp"),
    ("SQLite", r"sqlite3\.h", r"pipeline/study_store\.cpp"),
    ("CBC", r"coin/", r"rewriter/extract/cbc\.cpp"),
    ("CUDA", r"(cuda|nvrtc|cuda_runtime)[^/]*\.h", r"backends/cuda/.*"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".hpp", ".cpp", ".h", ".cc", ".inc"}


def offences_of(relative, text):
    """Yields (line number, reason) for one source given as its path from the root and its text."""
    folder = relative.split("/")[0]
    if text.startswith("// Exports "):
        yield 1, "opens with what it exports, which its header says; say what problem it solves and how, or nothing"
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, name = found.groups()
        for library, pattern, home in LIBRARIES:
            if re.match(pattern, name) and not re.fullmatch(home, relative):
                yield number, f"{library} ({name}) is allowed only in {home}"
        top = name.split("/")[0]
        if quote == '"' and "/" not in name and top not in ("gvc.h", "cgraph.h"):
            yield number, f'"{name}" is not written from the root'
        elif top in ALLOWED and "/" in name and top not in ALLOWED[folder]:
            yield number, f"{folder}/ includes {name}, which stands above it"


def check(root):
    """All offences under root as `file:line: reason`, in order of file and line."""
    messages = []
    for folder in sorted(ALLOWED):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            relative = path.relative_to(root).as_posix()
            for number, reason in offences_of(relative, path.read_text(encoding="utf-8")):
                messages.append(f"{relative}:{number}: {reason}")
    return messages


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    messages = check(root)
    print("\n".join(messages) or "layers: no upward include")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
