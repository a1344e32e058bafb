#!/usr/bin/python3
"""The grammars of editors and Pygments are what `pwr grammar` prints, and they colour every text like the parser's own tokens: all rule files and
graphs of the tree, and 1000 mutants of them."""
import importlib.util
import json
import random
import re
import unittest
from pathlib import Path

from program import ProgramTest

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {
    "textmate": "editors/vscode/syntaxes/pwr.tmLanguage.json",
    "pygments": "python/piecewise/highlighting.py",
    "emacs": "editors/emacs/pwr-words.el",
}
CLASS_OF_SCOPE = {
    "comment.line.double-slash": "comment",
    "string.quoted.double": "string",
    "constant.character.escape": "escape",
    "variable.other.quoted": "quoted",
    "constant.numeric": "number",
    "constant.language": "literal",
    "keyword.control": "reserved",
    "keyword.other": "contextual",
    "storage.type": "dtype",
    "entity.name.function": "call",
    "variable.other": "name",
    "keyword.operator": "operation",
    "punctuation.bracket": "bracket",
    "invalid.illegal": "invalid",
}
CLASS_OF_TOKEN = {
    "Token.Comment.Single": "comment",
    "Token.Literal.String.Double": "string",
    "Token.Literal.String.Escape": "escape",
    "Token.Name.Label": "quoted",
    "Token.Literal.Number": "number",
    "Token.Keyword.Constant": "literal",
    "Token.Keyword": "reserved",
    "Token.Keyword.Pseudo": "contextual",
    "Token.Keyword.Type": "dtype",
    "Token.Name.Function": "call",
    "Token.Name": "name",
    "Token.Operator": "operation",
    "Token.Punctuation": "bracket",
    "Token.Error": "invalid",
}
STRANGE = [
    "{",
    "}",
    '"',
    "`",
    "\\",
    "//",
    "1.5",
    "12x",
    "1e5",
    "é",
    "🙂",
    "#",
    "=>",
    "<=",
    "rule",
    "group",
    "f32",
    ".",
    "\n",
    " ",
    "\\q",
    "inf",
    "?(",
    "\t",
]
BLANK = " \t\r\n"


def mutant(text, source):
    """A few pieces of it taken out, doubled, moved or replaced."""
    pieces = re.findall(r"\w+|\s+|.", text)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(pieces))
        pieces[at : at + source.randint(0, 2)] = source.choice([[], [source.choice(STRANGE)], [source.choice(pieces)] * 2])
        pieces = pieces or [" "]
    return "".join(pieces)[:4000]


class TextMate:
    """A minimal interpreter of TextMate grammars: the first pattern that matches at a place, line by line."""

    def __init__(self, grammar):
        self.patterns = self.compiled(json.loads(grammar)["patterns"])

    def compiled(self, patterns):
        inner = lambda one: self.compiled(one.get("captures", {}).get("0", {}).get("patterns", []))  # noqa: E731
        return [(re.compile(one["match"]), CLASS_OF_SCOPE[one["name"].removesuffix(".pwr")], inner(one)) for one in patterns]

    def classes(self, text):
        out = []
        for line in re.findall(r"[^\n]*\n|[^\n]+$", text):
            found = [None] * len(line)
            self.fill(line, 0, len(line), self.patterns, found)
            out += found
        return out

    def fill(self, line, at, end, patterns, found):
        while at < end:
            for pattern, kind, inner in patterns:
                match = pattern.match(line, at, end)
                if match and match.end() > at:
                    found[at : match.end()] = [kind] * (match.end() - at)
                    self.fill(line, at, match.end(), inner, found)
                    at = match.end() - 1
                    break
            at += 1


class Grammar(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        texts = [path.read_text() for folder in ("rules", "examples", "bench", "tests") for path in sorted((ROOT / folder).rglob("*.pw[rg]"))]
        source = random.Random(19)
        cls.texts = texts + [mutant(source.choice(texts)[:4000], source) for _ in range(1000)]

    def parsers(self):
        """The classes of each text's characters, from the parser's tokens."""
        names = [self.file(f"{i}.pwr", text) for i, text in enumerate(self.texts)]
        rows = self.pwr("grammar", "classes", *names, "--format", "csv").stdout.splitlines()[1:]
        found = {name: [None] * len(text.encode()) for name, text in zip(names, self.texts)}
        for row in rows:
            name, begin, end, kind = row.rsplit(",", 3)
            found[name][int(begin) : int(end)] = [kind] * (int(end) - int(begin))
        for name, text in zip(names, self.texts):
            at, out = 0, []
            for character in text:
                out.append(found[name][at])
                at += len(character.encode())
            yield out

    def compare(self, classes, expected):
        kinds = set()
        for text, is_, wanted in zip(self.texts, classes, expected):
            differing = [(i, text[i : i + 20], is_[i], wanted[i]) for i in range(len(text)) if text[i] not in BLANK and is_[i] != wanted[i]]
            self.assertEqual(differing[:3], [], text[max(0, differing[0][0] - 40) :][:80] if differing else "")
            kinds.update(wanted)
        self.assertEqual(kinds - {None}, set(CLASS_OF_SCOPE.values()))

    def test_generated_files_are_current(self):
        for form, path in GENERATED.items():
            self.assertEqual((ROOT / path).read_text(), self.pwr("grammar", form).stdout, f"run: pwr grammar {form} > {path}")

    def test_textmate_colours_as_the_parser_reads(self):
        grammar = TextMate((ROOT / GENERATED["textmate"]).read_text())
        self.compare([grammar.classes(text) for text in self.texts], list(self.parsers()))

    def test_pygments_colours_as_the_parser_reads(self):
        try:
            import pygments  # noqa: F401
        except ImportError:
            self.skipTest("Pygments is not installed")
        spec = importlib.util.spec_from_file_location("highlighting", ROOT / GENERATED["pygments"])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        lexer = module.PwrLexer()

        def classes(text):
            out = []
            for _, token, piece in lexer.get_tokens_unprocessed(text):
                out += [CLASS_OF_TOKEN.get(str(token))] * len(piece)
            return out

        self.compare([classes(text) for text in self.texts], list(self.parsers()))

    def test_a_text_has_its_classes_by_file(self):
        name = self.file("one.pwr", "rule a")
        self.assertEqual(
            self.pwr("grammar", "classes", name, "--format", "csv").stdout.splitlines()[1:], [f"{name},0,4,contextual", f"{name},5,6,name"]
        )


if __name__ == "__main__":
    unittest.main()
