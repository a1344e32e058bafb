#!/usr/bin/python3
"""Checks the order of the folders: includes that go up, outside libraries out of place, folders that grew too large, file headers
that only repeat names, and the other files that state the order.

    check_layers.py [ROOT]     prints `file:line: reason` for each offence; exit 1 if there are any
"""
import re
import sys
from pathlib import Path

# A room may include the rooms of the core before it. Libraries and labs include each other only as NEIGHBOURS allows; the
# programs include everything.
CORE = "base algebra graph models dsl rewriter splitter tensor codegen backends exec cuda engines verify viz pipeline".split()
LIBRARIES = "import ranks lsp serve".split()
LABS = "proof discover studies failures kernel_reports".split()
PROGRAMS = ["cli", "python"]
# The order in which CMake adds them and docs/architecture.md lists them, lowest first.
STACK = (
    "base algebra graph models dsl rewriter splitter tensor import codegen backends exec cuda engines ranks verify viz pipeline proof "
    "discover studies failures kernel_reports lsp serve cli python"
).split()
NEIGHBOURS = {"serve": {"lsp"}}


def allowed(folder):
    """The rooms that a room may include."""
    below = set(STACK[: STACK.index(folder) + 1]) - {"cli"}
    if folder in PROGRAMS:
        return below | {folder}
    if folder == "viz":
        return set(STACK[: STACK.index("tensor")]) | {"viz"}
    return (below & set(CORE)) | {folder} | NEIGHBOURS.get(folder, set())


ALLOWED = {folder: allowed(folder) for folder in STACK}
ALLOWED["bench"] = set(STACK) - set(PROGRAMS) | {"bench"}

# Source files directly in one folder, at most.
LARGEST_FOLDER = 40

# The outside library an include names, and the only files that may name it.
OUTSIDE = [
    ("Boost", r"boost/", r"dsl/syntax/grammar[^/]*\.cpp|algebra/rational\.cpp|import/.*\.cpp"),
    ("Eigen", r"(Eigen|unsupported/Eigen)/", r"((tensor|backends)/.*|bench/eigen)\.cpp"),
    ("JSON", r"nlohmann/", r".*_json\.cpp"),
    ("TOML", r"toml\+\+/", r"cli/config_value\.cpp"),
    ("Graphviz", r"(graphviz/.*|gvc\.h|cgraph\.h)", r"viz/.*\.cpp"),
    ("cpp-httplib", r"httplib\.h", r"serve/http_module\.cpp"),
    ("libzip", r"zip\.h", r"base/io/zip\.cpp"),
    ("SQLite", r"sqlite3\.h", r"studies/study_store\.cpp"),
    ("CBC", r"coin/", r"rewriter/extract/cbc\.cpp"),
    ("CUDA", r"(cuda|nvrtc|cuda_runtime)[^/]*\.h", r"(cuda|ranks)/.*"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".hpp", ".cpp", ".h", ".cc", ".inc"}


def offences_of(relative, text):
    """Yields (line number, reason) for one source given as its path from the root and its text."""
    folder = relative.split("/")[0]
    if text.startswith("// Exports "):
        yield 1, "opens with what it exports, which is in its header; state the problem it solves and how, or nothing"
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, name = found.groups()
        for library, pattern, home in OUTSIDE:
            if re.match(pattern, name) and not re.fullmatch(home, relative):
                yield number, f"{library} ({name}) is allowed only in {home}"
        top = name.split("/")[0]
        if quote == '"' and "/" not in name and top not in ("gvc.h", "cgraph.h"):
            yield number, f'"{name}" is not written from the root'
        elif top in ALLOWED and "/" in name and top not in ALLOWED[folder]:
            yield number, f"{folder}/ includes {name}, a folder of a higher layer"


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


def crowded(root):
    """Folders with more sources than LARGEST_FOLDER, as messages."""
    for folder in sorted(ALLOWED):
        for path in [root / folder, *sorted((root / folder).rglob("*"))]:
            if path.is_dir() and path.name != "__pycache__":
                count = sum(child.suffix in SOURCES for child in path.iterdir())
                if count > LARGEST_FOLDER:
                    yield f"{path.relative_to(root).as_posix()}:1: {count} source files in one folder, at most {LARGEST_FOLDER}: group them"


def stated_orders(root):
    """Yields (file, the rooms in the order in which the file states them) for each file that states an order."""
    cmake = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    yield "CMakeLists.txt", [room for room in re.findall(r"add_subdirectory\(([a-z_]+)\)", cmake) if room in STACK]
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    yield "docs/architecture.md", [room for room in re.findall(r"^\| `([a-z_]+)/` \|", page, re.M) if room in STACK]
    tidy = (root / ".clang-tidy").read_text(encoding="utf-8")
    yield ".clang-tidy", [room for room in re.search(r"HeaderFilterRegex: '/\(([a-z_|]+)\)", tidy).group(1).split("|") if room in STACK]
    dev = (root / "dev").read_text(encoding="utf-8")
    yield "dev", [room for room in re.search(r"^CODE=\(([^)]*)\)", dev, re.M).group(1).split() if room in STACK]


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    messages = check(root) + list(crowded(root))
    for name, order in stated_orders(root):
        if order != STACK:
            messages.append(f"{name}:1: states the order {' '.join(order)}; it is {' '.join(STACK)}")
    print("\n".join(messages) or "layers: no upward include")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
