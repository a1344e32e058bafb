#!/usr/bin/python3
"""Functions are short: no C++ function outside tests/ and bench/ has a body of more than 60 lines.

A lambda counts as a part of the function around it. An exception is a function, and why it is one.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {"build", "tests", "bench"}
# "file: function", and the reason.
EXCEPTIONS = {
    "import/fx/calls/special.cpp: convert_special": "a table: a line for each special conversion",
    "rewriter/matcher/machine.hpp: execute": "the loop of the matcher's machine: a case for each instruction, on registers",
}
MOST = 60

# Text in which braces mean nothing: raw strings, strings, characters, comments and directives.
BLANK = re.compile(
    r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'' r"|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
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
    code = BLANK.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text)
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
    assert faults([("a.cpp", SAMPLE)], {"a.cpp: run": "a reason"}, 4)[1] == ["a.cpp: run: an exception that nothing needs"]


def main():
    check_itself()
    count, wrong = faults(sources(ROOT), EXCEPTIONS, MOST)
    print("\n".join(wrong) or f"sizes: {count} functions of at most {MOST} lines, {len(EXCEPTIONS)} exceptions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
