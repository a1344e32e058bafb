#!/usr/bin/python3
"""Fails if one name of a namespace denotes two types: their inline functions would be merged at link time.

    check_types.py [ROOT]     prints `file:line: reason` for each offence; exit 1 when there are any

Types of anonymous namespaces and of functions belong to one file and are left out. The sources of a folder of tests are
one program with those of the project, but not with those of another folder of tests.
"""
import re
import sys
from pathlib import Path

from check_layers import ALLOWED, SOURCES

# Comments, preprocessor lines, literals and numbers (1'000 holds no character) first: their text is not code.
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*|(?:u8|[uUL])?R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"
      |"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)+'|(?P<number>\d[\w'.]*)|(?P<word>[A-Za-z_]\w*)|(?P<sign>::|[^\s\w])""",
    re.S | re.M | re.X,
)
KEYS = {"struct", "class", "union", "enum"}
TRANSPARENT, OPAQUE = "", None  # scopes besides the names of namespaces


def closing(tokens, at, opens, closes):
    """Returns the place after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] == opens) - (tokens[i] == closes)
        if depth == 0:
            return i + 1
    return len(tokens)


def type_named(head):
    """The name of the type that `head {` defines, as it is written, or None."""
    at = 0
    while at < len(head) and head[at] not in KEYS:
        if head[at] in "(=":
            return None  # a function, or what a variable is initialised with
        at = closing(head, at, "<", ">") if head[at] == "<" else at + 1
    while at < len(head) and head[at] in KEYS:
        at += 1
    name = ""
    while at < len(head) and head[at] not in (":", "final"):
        if head[at] == "[":
            at = closing(head, at, "[", "]")
        elif head[at] == "alignas":
            at = closing(head, at + 1, "(", ")")
        elif head[at] == "<":
            end = closing(head, at, "<", ">")
            name += "".join(head[at:end])
            at = end
        elif re.match(r"\w|::", head[at]):
            name += head[at]
            at += 1
        else:
            return None
    return name or None


def scope_of(head):
    """Returns the kind of scope that `head {` opens: a namespace's name, TRANSPARENT, or OPAQUE where no other file can look."""
    words = [word for word in head if word != "inline"]
    if words[:1] == ["namespace"]:
        return "".join(words[1:]) or OPAQUE
    return TRANSPARENT if words == ["extern"] else OPAQUE


def types_of(text):
    """Yields (line number, qualified name) for each type that a source defines where others can name it."""
    scopes, head, line, at = [], [], 1, 0
    for token in TOKEN.finditer(text):
        line, at = line + text.count("\n", at, token.start()), token.start()
        word = token["word"] or token["sign"] or token["number"]
        if word == "{":
            if OPAQUE not in scopes and (name := type_named(head)):
                yield line, "::".join([scope for scope in scopes if scope] + [name])
            scopes.append(scope_of(head))
            head = []
        elif word == "}":
            scopes[-1:] = []
            head = []
        elif word == ";":
            head = []
        elif word:
            head.append(word)


def sources(root, folder):
    return [path for path in sorted((root / folder).rglob("*")) if path.suffix in SOURCES]


def check(root):
    """All offences under root as `file:line: reason`, in order of program, file and line."""
    project = [path for folder in sorted(ALLOWED) for path in sources(root, folder)]
    programs = [project, *(sources(root, folder) for folder in sorted((root / "tests").glob("*")))]
    messages, of_project = [], {}
    for program in programs:
        first = dict(of_project)
        for path in program:
            relative = path.relative_to(root).as_posix()
            for line, name in types_of(path.read_text(encoding="utf-8")):
                known = first.setdefault(name, (relative, line))
                if known[0] != relative:
                    messages.append(f"{relative}:{line}: {name} is another type at {known[0]}:{known[1]}")
        of_project = of_project or first
    return messages


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    messages = check(root)
    print("\n".join(messages) or "types: one name, one type")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
