#!/usr/bin/python3
"""Functions and classes are small: outside tests/ and bench/, no C++ function has a body of more than 60 lines,
no class has more than 400 lines or 40 member functions.

A lambda counts as a part of the function around it. A class counts with the bodies of its member functions in all
files of its room. An exception is a function or a class, and the reason.
"""
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {"build", "tests", "bench"}
# "file: function", and the reason.
EXCEPTIONS = {
    "rewriter/matcher/machine.hpp: execute": "the loop of the matcher's machine: a case for each instruction, on registers",
}
MOST = 60
# "file: class", and the reason.
LARGE_CLASSES = {
    "graph/graph.hpp: Graph": "packed records share bits, so each mutation updates several at once; most members are accessors of one line",
    "verify/bounds.cpp: BoundedRun": "a rule of error bounds for each primitive",
    "verify/samples/instance.cpp: Attempt": "a builder for each kind of pattern node, on the same bindings, sizes and graph",
}
MOST_LINES, MOST_METHODS = 400, 40

# Text in which braces mean nothing: raw strings, strings, characters, comments and directives.
BLANK = re.compile(
    r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'' r"|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
CLASS = re.compile(r"\b(?:class|struct)\s+([\w:]+)(?:\s+final)?(?:\s*:(?!:)[^{;]*)?$")
SCOPE = re.compile(r"\bnamespace\b|\bextern\s*$|\b(class|struct|union)\b")


def pairs(code):
    """Returns the place of the closing brace of each opening one, or None if they do not match."""
    closing, opened = {}, []
    for brace in re.finditer(r"[{}]", code):
        if brace[0] == "{":
            opened.append(brace.start())
        elif not opened:
            return None
        else:
            closing[opened.pop()] = brace.start()
    return None if opened else closing


def without(text, opening, closing):
    """Returns the text without the parts between these, which may be nested."""
    part = re.compile(rf"{opening}[^{opening}{closing}]*{closing}")
    while part.search(text):
        text = part.sub(" ", text)
    return text


def kind(head):
    """Returns what a brace after this text opens: a scope, a function, or a value."""
    head = re.sub(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+)", "operator", head)
    flat = without(head, r"\(", r"\)")
    if re.search(r"(?<!=)=(?!=)", re.sub(r"[<>]=", "", without(flat, "<", ">"))):
        return "value"
    if "(" not in re.sub(r"\balignas\(\w+\)|\b__attribute__\(\(.*?\)\)", "", head):
        scope = SCOPE.search(without(head, "<", ">")) and not re.search(r"\benum\b", head)
        return "scope" if scope else "value"
    initializers = re.search(r"\)\s*(noexcept\s*)?:(?!:)", head)
    return "value" if initializers and re.search(r"[\w>]\s*$", head) else "function"


def functions(text):
    """Yields the line, name and number of lines of each function body; None if braces do not match."""
    code = blanked(text)
    closing = pairs(code)
    if closing is None:
        yield None
        return
    token, begin, depth, at = re.compile(r"[{}();]"), 0, 0, 0
    while found := token.search(code, at):
        at = found.end()
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        elif found[0] in ";}":
            begin = at if depth == 0 else begin
        else:
            head = code[begin : found.start()]
            what = "value" if depth > 0 else kind(head)
            end = closing[found.start()]
            at = at if what == "scope" else end + 1
            begin = begin if what == "value" else at
            if what == "function":
                head = re.sub(r"^\s*template\b", "", head)
                name = re.search(r"(operator\s*\S+?|(?!decltype|noexcept)\b[\w:~]+)\s*\(", head)
                line = code.count("\n", 0, found.start()) + 1
                yield line, name[1] if name else "?", max(code.count("\n", found.start(), end) - 1, 0)


def blanked(text):
    """Returns the text with spaces in place of strings and comments, whose braces mean nothing."""
    return BLANK.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text)


def methods(body):
    """Returns the number of member functions that a class body declares."""
    flat = body
    while re.search(r"\{[^{}]*\}", flat):
        flat = re.sub(r"\{[^{}]*\}", ";", flat)
    lines = re.split(r";|\b(?:public|private|protected):", without(flat, "<", ">"))
    # What starts with a comma goes on with the list of a constructor's initializers.
    return sum(bool(re.match(r"\s*[^=,]*?(\boperator\s*\S+?|\w)\s*\(", line)) for line in lines)


def classes(text):
    """Yields the name, the number of lines and the number of member functions of each class body."""
    code = blanked(text)
    closing = pairs(code) or {}
    for opening, end in closing.items():
        head = re.split(r"[;{}]", code[max(opening - 300, 0) : opening])[-1].strip()
        found = CLASS.search(head)
        if found and not re.search(r"\benum\b", head):
            body = code[opening + 1 : end]
            yield found[1], body.count("\n"), methods(body)


def large_classes(files, exceptions, most_lines, most_methods):
    """Returns the number of classes, and what is wrong."""
    found, members = {}, Counter()
    for file, text in files:
        found |= {(file, name): [lines, count] for name, lines, count in classes(text)}
        for function in functions(text):
            *_, owner, _ = ["", "", *function[1].split("::")] if function else ["", ""]
            members[file, owner] += function[2] + 2 if owner else 0
    for (file, owner), lines in members.items():
        near = [key for key in found if key[1] == owner and key[0].split("/")[0] == file.split("/")[0]]
        if near:
            found[max(near, key=lambda key: shared_prefix(key[0], file))][0] += lines
    large = {f"{file}: {name}": sizes for (file, name), sizes in found.items() if sizes[0] > most_lines or sizes[1] > most_methods}
    wrong = [
        f"{name} has {lines} lines and {count} member functions, at most {most_lines} and {most_methods}"
        for name, (lines, count) in large.items()
        if name not in exceptions
    ]
    wrong += [f"{name}: an exception that nothing needs" for name in exceptions if name not in large]
    return len(found), wrong


def shared_prefix(a, b):
    """Returns how many folders, or the whole path, two paths have in common."""
    a, b = a.rsplit(".", 1)[0].split("/"), b.rsplit(".", 1)[0].split("/")
    return next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def sources(root):
    for path in sorted([*root.rglob("*.cpp"), *root.rglob("*.hpp")]):
        relative = path.relative_to(root)
        if relative.parts[0] not in SKIPPED and not relative.parts[0].startswith("."):
            yield relative.as_posix(), path.read_text(encoding="utf-8")


def faults(files, exceptions, most):
    """Returns the number of functions, and what is wrong."""
    count, wrong, needed = 0, [], set()
    for file, text in files:
        for function in functions(text):
            if function is None:
                wrong.append(f"{file}: its braces do not match")
                continue
            line, name, lines = function
            count += 1
            if lines > most and f"{file}: {name}" in exceptions:
                needed.add(f"{file}: {name}")
            elif lines > most:
                wrong.append(f"{file}:{line}: {name} has {lines} lines, at most {most}")
    wrong += [f"{name}: an exception that nothing needs" for name in exceptions if name not in needed]
    return count, wrong


SAMPLE = r"""
#define PW_OPEN {
namespace pw { namespace {
enum class Kind : int { one, two };
const std::map<int, F> kTable = {
    {1, [](int x) {
       return x; }},
};
template <class T, class U = std::vector<T>>
struct Pair final : Base<T> {
 public:
  Pair(T t, int n = int{3}) : Base<T>{t}, t_{t}, n_(n) {}
  bool operator==(const Pair& other) const { return '{' == t_; }
  auto run(std::function<void()> f = {}) const -> std::vector<int> {
    const char* text = R"x({ " ) x)x"; // {
    if (f) {
      f();
    }
  }
  T t_{};
};
}  // namespace
Pair<int>
made(int a) noexcept {

  struct Local { int x() { return 1'000; } };
}
Graph::Graph(int a)
    : a_(a) {
  start();
}
}
"""


def check_itself():
    found = list(functions(SAMPLE))
    expected = [(12, "Pair", 0), (13, "operator==", 0), (14, "run", 4), (24, "made", 2), (29, "Graph::Graph", 1)]
    assert found == expected, found
    assert list(functions("void f() {")) == [None]
    _, wrong = faults([("a.cpp", SAMPLE)], {"a.cpp: run": "a reason"}, 1)
    assert wrong == ["a.cpp:24: made has 2 lines, at most 1"], wrong
    assert list(classes(SAMPLE)) == [("Pair", 11, 3), ("Local", 0, 1)], list(classes(SAMPLE))
    files = [("a/x.hpp", "struct X {\n  int f();\n  int g();\n};"), ("a/b/x.cpp", "int X::f() {\n  return 1;\n}"), ("c/x.cpp", "int X::g() {}")]
    assert large_classes(files, {}, 4, 1) == (1, ["a/x.hpp: X has 6 lines and 2 member functions, at most 4 and 1"]), large_classes(files, {}, 4, 1)
    assert large_classes(files, {"a/x.hpp: X": "a reason"}, 6, 2)[1] == ["a/x.hpp: X: an exception that nothing needs"]
    assert faults([("a.cpp", SAMPLE)], {"a.cpp: run": "a reason"}, 4)[1] == ["a.cpp: run: an exception that nothing needs"]


def main():
    check_itself()
    files = list(sources(ROOT))
    count, wrong = faults(files, EXCEPTIONS, MOST)
    number, large = large_classes(files, LARGE_CLASSES, MOST_LINES, MOST_METHODS)
    wrong += large
    print(
        "\n".join(wrong)
        or f"sizes: {count} functions of at most {MOST} lines, {number} classes of at most {MOST_LINES} lines and {MOST_METHODS} "
        f"member functions, {len(EXCEPTIONS) + len(LARGE_CLASSES)} exceptions"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
