#!/usr/bin/python3
"""`pwr lsp` as an editor meets it: sessions over its standard streams, with texts that are unsaved, broken and full of characters of several units."""
import json
import os
import re
import subprocess
import threading
import time
import unittest
from pathlib import Path

from lsp_client import Client
from program import BIN, ProgramTest

SHARED = """// What both sides know.
op scale_shift(x: T[*s], w: T[*s]) {by: float = 1.0, label: str = "none"} -> y: T[*s] {
  y = T(f32(x) * f32(w) + by)
}

pattern doubled(x) -> y { y = add(x, x) }

group tidy {
  rule twice_relu { y = relu(relu(x)) => y = relu(x) }
  rule twice_neg { y = neg(neg(x: T[*s])) => y = x }
}
"""

# The characters before a name on a line: é has one unit of UTF-16 and two of UTF-8, 🙂 has two and four.
MAIN = """// 🙂 é
use "shared.pwr"

param wide: int = 8

table Kind (op, bits) {
  eight: relu, 8
  nine: silu, 9
}

rule shift {
  h = scale_shift(x: T[*b, d], w: T[*b, d]){by, label = "é🙂"}  y = mul(h, w)
  where d > wide, by > 0.5
  =>
  z = scale_shift(x, w){by = by, label = "é🙂"}
  y = mul(z, w)
}

rule pick for k in Kind over shift, tidy.twice_relu {
  y = k.op(doubled(x: T[*b]))
  =>
  y = sigmoid(x)
}

pass all = greedy { tidy.*, tidy.twice_relu, shift, pick[eight] } fuel 100
pipeline main { all when wide > 4 }

test shifts {
  graph {
    in x: bf16[n, 16], w: bf16[n, 16]
    h = scale_shift(x, w){by = 2.0, label = "é🙂"}  y = mul(h, w)
    out y
  }
  apply main with wide = 8
  expect shift == 0, tidy.twice_relu == 0, count(mul) == 1
}
"""
GRAPH = """graph g {
  symbol n in 1..64 tokens
  in x: bf16[n, 16]
  a = relu(relu(x))
  b = relu(relu(a))
  c = relu(b)
  y = neg(neg(c))
  out y, c
}
"""


def units(text, encoding="utf-16"):
    return len(text.encode("utf-16-le")) // 2 if encoding == "utf-16" else len(text.encode())


def place(text, index, encoding="utf-16"):
    line = text.count("\n", 0, index)
    begin = text.rfind("\n", 0, index) + 1
    return {"line": line, "character": units(text[begin:index], encoding)}


def cut(text, span):
    """Returns the text that a range covers."""
    lines = text.split("\n")

    def index(at):
        line = lines[at["line"]].encode("utf-16-le")[: 2 * at["character"]].decode("utf-16-le")
        return sum(len(one) + 1 for one in lines[: at["line"]]) + len(line)

    return text[index(span["start"]) : index(span["end"])]


def applied(text, edits):
    for edit in sorted(edits, key=lambda edit: (edit["range"]["start"]["line"], edit["range"]["start"]["character"]), reverse=True):
        lines = text.split("\n")

        def index(at, lines=lines):
            line = lines[at["line"]].encode("utf-16-le")[: 2 * at["character"]].decode("utf-16-le")
            return sum(len(one) + 1 for one in lines[: at["line"]]) + len(line)

        text = text[: index(edit["range"]["start"])] + edit["newText"] + text[index(edit["range"]["end"]) :]
    return text


class LspTest(ProgramTest):
    def setUp(self):
        self.shared = self.file("shared.pwr", SHARED)
        self.main = self.path("main.pwr")  # not on disk: it was never saved
        Path(self.main).unlink(missing_ok=True)
        self.uri, self.shared_uri = Path(self.main).as_uri(), Path(self.shared).as_uri()
        # Freed memory that a sanitizer withholds is not the server's.
        self.env = {**os.environ, "XDG_CACHE_HOME": self.path("cache"), "ASAN_OPTIONS": "quarantine_size_mb=16"}
        self.client = Client(env=self.env)
        self.addCleanup(self.client.close)
        self.text = MAIN

    def start(self, capabilities=None, **params):
        result = self.client.initialize(capabilities, rootUri=Path(self.folder.name).as_uri(), **params)
        self.client.open(self.uri, self.text)
        return result

    def at(self, code, offset=0, nth=0):
        """Parameters for the place of a piece of the text, which has it at least nth + 1 times."""
        index = -1
        for _ in range(nth + 1):
            index = self.text.index(code, index + 1)
        return {"textDocument": {"uri": self.uri}, "position": place(self.text, index + offset)}

    def ask(self, method, code=None, offset=0, nth=0, **more):
        where = self.at(code, offset, nth) if code else {"textDocument": {"uri": self.uri}}
        return self.client.ask("textDocument/" + method, **where, **more)

    def whole(self):
        return {"start": {"line": 0, "character": 0}, "end": place(self.text, len(self.text))}

    def change(self, text, version):
        self.text = text
        self.client.notify("textDocument/didChange", textDocument={"uri": self.uri, "version": version}, contentChanges=[{"text": text}])

    def formatted(self, text):
        return self.pwr("fmt", "--stdout", self.file("to_format.pwr", text)).stdout

    def diagnostics(self, version=None):
        wanted = {"uri": self.uri} if version is None else {"uri": self.uri, "version": version}
        return self.client.notification("textDocument/publishDiagnostics", **wanted)["diagnostics"]

    def codes(self):
        return {one["code"] for one in self.diagnostics()}


class Session(LspTest):
    def test_a_session_of_sixty_requests(self):
        legend = self.start(capabilities={"textDocument": {"completion": {"completionItem": {"snippetSupport": True}}}})
        self.assertEqual(legend["capabilities"]["positionEncoding"], "utf-16")
        self.assertEqual(self.diagnostics(1), [])
        self.definitions()
        self.references()
        self.hovers()
        self.completions()
        self.signatures()
        self.outlines()
        self.renames()
        self.drawn()
        self.broken_and_back()
        self.out_of_order()
        self.assertGreaterEqual(self.client.last_id, 60)
        self.assertEqual(self.client.end(), 0)

    def definition_of(self, code, offset=0, nth=0):
        """Returns the file name and the text of the only location."""
        found = self.ask("definition", code, offset, nth)
        self.assertEqual(len(found), 1, (code, found))
        uri, span = found[0]["uri"], found[0]["range"]
        text = {self.uri: self.text, self.shared_uri: SHARED}.get(uri)
        text = Path(uri.removeprefix("file://")).read_text() if text is None else text
        return Path(uri).name, cut(text, span), span["start"]["line"]

    def definitions(self):
        self.assertEqual(self.definition_of("scale_shift(x: T"), ("shared.pwr", "scale_shift", 1))
        self.assertEqual(self.definition_of("mul(h, w)\n  where"), ("primitive.pwr", "mul", self.library_line("op mul(")))  # after é🙂
        self.assertEqual(self.definition_of("h, w)\n  where"), ("main.pwr", "h", 11))
        self.assertEqual(self.definition_of("doubled(x"), ("shared.pwr", "doubled", 5))
        self.assertEqual(self.definition_of("wide, by"), ("main.pwr", "wide", 3))
        self.assertEqual(self.definition_of("by > 0.5"), ("main.pwr", "by", 11))
        self.assertEqual(self.definition_of("Kind over"), ("main.pwr", "Kind", 5))
        self.assertEqual(self.definition_of("k.op", 2), ("main.pwr", "op", 5))
        self.assertEqual(self.definition_of("shift, tidy.twice_relu {"), ("main.pwr", "shift", 10))
        self.assertEqual(self.definition_of("tidy.*"), ("shared.pwr", "tidy", 7))
        self.assertEqual(self.definition_of("twice_relu, shift"), ("shared.pwr", "twice_relu", 8))
        self.assertEqual(self.definition_of("eight]"), ("main.pwr", "eight", 6))
        self.assertEqual(self.definition_of("all when"), ("main.pwr", "all", 24))
        self.assertEqual(self.definition_of("main with"), ("main.pwr", "main", 25))
        self.assertEqual(self.definition_of("label = ", 1), ("shared.pwr", "label", 1))
        self.assertEqual(self.ask("definition", '"shared.pwr"', 3)[0]["uri"], self.shared_uri)
        self.assertEqual(self.ask("definition", "// 🙂", 1), [])

    def library_line(self, code):
        text = (Path(__file__).resolve().parents[2] / "rules/ops/primitive.pwr").read_text()
        return text.count("\n", 0, text.index(code))

    def texts_of(self, locations):
        texts = {self.uri: self.text, self.shared_uri: SHARED}
        return [(Path(one["uri"]).name, cut(texts[one["uri"]], one["range"]), one["range"]["start"]["line"]) for one in locations]

    def references(self):
        rule = self.ask("references", "shift {", context={"includeDeclaration": True})
        self.assertEqual([line for _, _, line in self.texts_of(rule)], [10, 18, 24, 34])
        self.assertEqual({text for _, text, _ in self.texts_of(rule)}, {"shift"})
        uses = self.ask("references", "shift {", context={"includeDeclaration": False})
        self.assertEqual(len(uses), 3)
        op = self.texts_of(self.ask("references", "scale_shift(x: T", context={"includeDeclaration": True}))
        self.assertEqual(op, [("main.pwr", "scale_shift", line) for line in (11, 14, 30)] + [("shared.pwr", "scale_shift", 1)])
        dim = self.texts_of(self.ask("references", "d > wide", context={"includeDeclaration": True}))
        self.assertEqual([line for _, _, line in dim], [11, 11, 12])
        marked = self.ask("documentHighlight", "z = ")
        self.assertEqual([cut(self.text, one["range"]) for one in marked], ["z", "z"])

    def hover_of(self, code, offset=0, nth=0):
        found = self.ask("hover", code, offset, nth)
        return found["contents"]["value"] if found else None

    def hovers(self):
        op = self.hover_of("scale_shift(x: T")
        self.assertIn('op scale_shift(x: T[*s], w: T[*s]) {by: float = 1.0, label: str = "none"} -> y: T[*s]', op)
        self.assertIn("y = T(f32(x) * f32(w) + by)", op)  # its meaning
        self.assertIn("What both sides know", op)
        self.assertIn("h: T[*b, d]", self.hover_of("h = scale_shift"))  # inferred
        self.assertIn("y: T[*b, d]", self.hover_of("y = mul(h, w)\n  where"))
        self.assertIn("h: bf16[n, 16]", self.hover_of("h = scale_shift", nth=1))
        self.assertIn("label: str", self.hover_of("label = ", 1))
        self.assertIn("dim", self.hover_of("d > wide"))
        self.assertIn("param wide: int = 8", self.hover_of("wide, by"))
        self.assertIn("2 bytes", self.hover_of("bf16[n"))
        self.assertIn("rule twice_relu", self.hover_of("twice_relu, shift"))
        self.assertIsNone(self.hover_of("=>"))

    def labels(self, code, offset=0, nth=0):
        return {item["label"]: item for item in self.ask("completion", code, offset, nth)["items"]}

    def completions(self):
        operands = self.labels("mul(h, w)\n  where", len("mul("))
        self.assertLessEqual({"h", "x", "w", "relu", "scale_shift", "doubled"}, set(operands))
        self.assertEqual(operands["scale_shift"]["textEdit"]["newText"], "scale_shift(${1:x}, ${2:w})")
        self.assertEqual(operands["scale_shift"]["insertTextFormat"], 2)
        self.assertNotIn("shift", operands)
        attributes = self.labels("{by, label", 1)
        self.assertEqual(set(attributes), {"by", "label"})
        guards = self.labels("d > wide", len("d > "))
        self.assertLessEqual({"d", "by", "wide", "size", "rank"}, set(guards))
        self.assertNotIn("relu", guards)
        strategies = self.labels("tidy.*", 0)
        self.assertLessEqual({"shift", "pick", "tidy", "tidy.twice_neg", "all", "dce"}, set(strategies))
        self.assertNotIn("relu", strategies)
        self.assertLessEqual({"bf16", "f32", "T"}, set(self.labels("T[*b, d], w")))
        self.assertEqual(set(self.labels("k.op", 2)) - {"shape"}, {"op", "bits"})
        self.assertLessEqual({"shared.pwr", "llm.pwr"}, set(self.labels('"shared.pwr"', 4)))
        items = self.labels("rule shift")
        self.assertLessEqual({"rule", "op", "pass", "pipeline", "test", "use"}, set(items))
        self.assertEqual(self.labels("// 🙂", 3), {})

    def signatures(self):
        def active(code, offset):
            found = self.ask("signatureHelp", code, offset)
            if not found:
                return None
            signature = found["signatures"][0]
            begin, end = signature["parameters"][found["activeParameter"]]["label"]
            return signature["label"][begin:end]

        self.assertEqual(active("scale_shift(x: T", len("scale_shift(")), "x")
        self.assertEqual(active("w: T[*b, d]){by", 0), "w")
        self.assertEqual(active("w: T[*b, d]){by", 5), "w")  # inside of its type
        self.assertEqual(active('label = "é🙂"}  y', 8), "label")
        self.assertIsNone(self.ask("signatureHelp", "wide, by"))

    def outlines(self):
        found = self.ask("documentSymbol")
        names = [symbol["name"] for symbol in found]
        self.assertEqual(names, ["wide", "Kind", "shift", "pick", "all", "main", "shifts"])
        self.assertEqual(cut(self.text, found[2]["selectionRange"]), "shift")
        self.assertTrue(cut(self.text, found[2]["range"]).startswith("rule shift {"))
        everywhere = self.client.ask("workspace/symbol", query="twcr")
        self.assertEqual(
            [(one["name"], one["containerName"], one["location"]["uri"]) for one in everywhere], [("twice_relu", "tidy", self.shared_uri)]
        )

    def renamed(self, code, name, offset=0, nth=0):
        changes = self.ask("rename", code, offset, nth, newName=name)["changes"]
        texts = {self.uri: self.text, self.shared_uri: SHARED}
        return {Path(uri).name: applied(texts[uri], edits) for uri, edits in changes.items()}

    def refused(self, code, name="other", offset=0):
        with self.assertRaises(RuntimeError) as refusal:
            self.ask("rename", code, offset, newName=name)
        return refusal.exception.args[1]

    def renames(self):
        prepared = self.ask("prepareRename", "by > 0.5")
        self.assertEqual(prepared["placeholder"], "by")
        # `{by}` is the op's attribute and the rule's name at once: one of them stays.
        local = self.renamed("by > 0.5", "amount")
        self.assertEqual(list(local), ["main.pwr"])
        self.assertIn("{by = amount, label", local["main.pwr"])
        self.assertIn("where d > wide, amount > 0.5", local["main.pwr"])
        self.assertIn("{by = amount, label", local["main.pwr"].split("=>")[1])
        everywhere = self.renamed("scale_shift(x: T", "moved")
        self.assertEqual(everywhere["main.pwr"].count("moved("), 3)
        self.assertIn("op moved(x", everywhere["shared.pwr"])
        attribute = self.renamed("label = ", "tag", 1)
        self.assertEqual(attribute["main.pwr"].count("tag = "), 3)
        self.assertIn('tag: str = "none"', attribute["shared.pwr"])
        member = self.renamed("twice_relu, shift", "relu_relu")
        self.assertIn("tidy.relu_relu, shift", member["main.pwr"])
        self.assertIn("expect shift == 0, tidy.relu_relu == 0", member["main.pwr"])
        quoted = self.renamed("z = ", "two words")
        self.assertIn("mul(`two words`, w)", quoted["main.pwr"])
        self.assertIn("already in use", self.refused("z = ", "x"))
        self.assertIn("library", self.refused("mul(z"))
        self.assertIn("there is no name here", self.refused("=>"))

    def drawn(self):
        hints = self.ask("inlayHint", range=self.whole())
        lines = self.text.split("\n")
        drawn = {(hint["position"]["line"], hint["label"]) for hint in hints}
        self.assertIn((11, ": T[*b, d]"), drawn)
        self.assertIn((30, ": bf16[n, 16]"), drawn)
        after_name = [hint for hint in hints if hint["position"]["line"] == 11][1]["position"]["character"]
        self.assertEqual(after_name, units(lines[11][: lines[11].index("y = mul") + 1]))
        self.assertEqual(applied(self.text, self.ask("formatting", options={})), self.formatted(self.text))
        tokens = self.tokens()
        self.assertEqual(tokens[(10, "rule")], "keyword")
        self.assertEqual(tokens[(10, "shift")], "class")
        self.assertEqual(tokens[(11, "mul")], "function")
        self.assertEqual(tokens[(11, "T")], "type")
        self.assertEqual(tokens[(11, '"é🙂"')], "string")
        self.assertEqual(tokens[(11, "by")], "property")
        self.assertEqual(tokens[(0, "// 🙂 é")], "comment")
        self.assertEqual(self.ask("codeAction", range=self.whole(), context={"diagnostics": []}), [])
        self.assertEqual(self.ask("codeLens"), [])

    def tokens(self):
        """(line, text) → type, of the first on a line."""
        data = self.ask("semanticTokens/full")["data"]
        legend = ["comment", "string", "number", "keyword", "operator", "function", "type"]
        legend += ["class", "variable", "property", "decorator", "parameter", "enumMember", "macro"]
        out, line, column = {}, 0, 0
        for i in range(0, len(data), 5):
            line, column = line + data[i], data[i + 1] + (column if data[i] == 0 else 0)
            begin = {"line": line, "character": column}
            text = cut(self.text, {"start": begin, "end": {"line": line, "character": column + data[i + 2]}})
            out.setdefault((line, text), legend[data[i + 3]])
        return out

    def broken_and_back(self):
        sound = self.text
        self.change(sound.replace("mul(h, w)\n  where", "mull(h, \n  where"), 2)
        found = self.diagnostics(2)
        self.assertEqual([one["code"] for one in found], ["PW0101"])
        self.assertEqual(found[0]["range"]["start"]["line"], 12)
        self.assertIn("rule twice_relu", self.hover_of("twice_relu, shift"))  # the rest is as good as before
        self.assertLessEqual({"h", "w", "relu"}, set(self.labels("mull(h, ", len("mull(h, "))))
        self.assertEqual(self.definition_of("h, \n"), ("main.pwr", "h", 11))
        with self.assertRaises(RuntimeError):
            self.ask("formatting", options={})
        self.change(sound.replace("mul(h, w)\n  where", "mulh(h, w)\n  where"), 3)
        found = self.diagnostics(3)
        self.assertEqual([(one["code"], cut(self.text, one["range"])) for one in found], [("PW0220", "mulh(h, w)")])
        actions = self.ask("codeAction", range=found[0]["range"], context={"diagnostics": found})
        self.assertEqual([action["title"] for action in actions], ["Replace by `mul`"])
        self.assertEqual(applied(self.text, actions[0]["edit"]["changes"][self.uri]), sound)
        # One character at a time, in units of UTF-16, after é🙂.
        index = self.text.index("mulh(h") + 3
        span = {"start": place(self.text, index), "end": place(self.text, index + 1)}
        version = {"uri": self.uri, "version": 4}
        self.client.notify("textDocument/didChange", textDocument=version, contentChanges=[{"range": span, "text": ""}])
        self.text = sound
        self.assertEqual(self.diagnostics(4), [])
        self.change(sound.replace("  where d", "    where  d"), 5)
        formatted = self.formatted(sound)
        self.assertEqual(applied(self.text, self.ask("formatting", options={})), formatted)
        self.change(formatted, 6)
        self.assertEqual(self.diagnostics(6), [])
        self.assertEqual(self.ask("formatting", options={}), [])

    def out_of_order(self):
        first = self.client.request("textDocument/hover", self.at("z = "))
        second = self.client.request("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}})
        self.assertIn("result", self.client.answer(second))
        self.assertIn("result", self.client.answer(first))
        for code, method, params in [
            (-32601, "textDocument/unheardOf", {}),
            (-32602, "textDocument/hover", {"textDocument": {"uri": self.uri}}),
            (-32602, "textDocument/hover", {"textDocument": {"uri": "file:///not/open.pwr"}, "position": {"line": 0, "character": 0}}),
            (-32602, "textDocument/hover", {"textDocument": 3, "position": {"line": -1, "character": 0}}),
            (-32600, "initialize", {}),
        ]:
            answer = self.client.answer(self.client.request(method, params))
            self.assertEqual(answer["error"]["code"], code, answer)
        far = {"textDocument": {"uri": self.uri}, "position": {"line": 2147483647, "character": 2147483647}}
        self.assertIsNone(self.client.ask("textDocument/hover", **far))


class Others(LspTest):
    def test_utf8_positions_where_the_client_has_them(self):
        result = self.start(capabilities={"general": {"positionEncodings": ["utf-8", "utf-16"]}})
        self.assertEqual(result["capabilities"]["positionEncoding"], "utf-8")
        where = {"textDocument": {"uri": self.uri}, "position": place(MAIN, MAIN.index("mul(h, w)"), "utf-8")}
        found = self.client.ask("textDocument/definition", **where)
        self.assertEqual(Path(found[0]["uri"]).name, "primitive.pwr")

    def test_bad_frames_cost_no_answer(self):
        self.start()
        for bad in [
            b"Content-Length: x\r\n\r\n",
            b"garbage\r\n\r\n",
            b"\xff\xfe\x00",
            b"Content-Length: 3\r\n\r\n{{{",
            b"Content-Length: 2\r\n\r\n[]",
        ]:
            self.client.raw(bad)
            self.assertEqual(self.client.ask("textDocument/documentSymbol", textDocument={"uri": self.uri})[0]["name"], "wide")
        refused = [self.client.take(lambda message: message.get("id", 0) is None) for _ in range(4)]
        self.assertTrue(all(message["error"]["code"] in (-32700, -32600) for message in refused))
        self.assertEqual(self.client.end(), 0)

    def test_a_request_that_is_cancelled_at_once_is_answered_once(self):
        self.start()
        numbers = []
        content = b""
        for _ in range(50):
            self.client.last_id += 1
            numbers.append(self.client.last_id)
            for message in (
                '{"jsonrpc":"2.0","id":%d,"method":"workspace/symbol","params":{"query":""}}' % self.client.last_id,
                '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}' % self.client.last_id,
            ):
                content += b"Content-Length: %d\r\n\r\n%s" % (len(message), message.encode())
        self.client.raw(content)
        answers = [self.client.answer(number) for number in numbers]
        self.assertTrue(all(("result" in one) != (one.get("error", {}).get("code") == -32800) for one in answers))
        self.assertTrue(any("error" in one for one in answers))
        self.assertEqual(self.client.end(), 0)

    def test_a_lens_counts_in_the_graph_beside_the_rules(self):
        self.file("main.pwg", GRAPH)
        self.text = SHARED
        self.start(capabilities={"workspace": {"codeLens": {"refreshSupport": True}}})
        self.client.notification("workspace/codeLens/refresh")
        lenses = self.ask("codeLens")
        counted = {lens["command"]["arguments"][1]: lens["command"]["title"] for lens in lenses}
        self.assertEqual(counted["tidy.twice_neg"].split(" · ")[0], "1 match")

        explained = self.pwr("explain", "tidy.twice_relu", self.path("main.pwg"), "-r", self.shared, "--format", "json").stdout
        matches = explained.count('"matches": ') and int(explained.split('"matches": ')[1].split(",")[0])
        self.assertEqual(counted["tidy.twice_relu"].split(" ")[0], str(matches))
        self.assertTrue(counted["tidy.twice_relu"].endswith("in main.pwg"))
        why = self.client.ask("workspace/executeCommand", command="piecewise.explain", arguments=[self.uri, "tidy.twice_relu"])
        self.assertIn("matches ·", why)

    def test_a_graph_of_the_settings(self):
        graph = self.file("model.pwg", GRAPH)
        self.text = SHARED
        self.start(capabilities={"workspace": {"codeLens": {"refreshSupport": True}}}, initializationOptions={"graph": "model.pwg"})
        self.client.notification("workspace/codeLens/refresh")
        self.assertIn("in model.pwg", self.ask("codeLens")[0]["command"]["title"])
        Path(graph).write_text("graph g {")
        self.client.notify("workspace/didChangeConfiguration", settings={"piecewise": {"graph": "model.pwg"}})
        self.client.notification("workspace/codeLens/refresh")
        self.assertIn("model.pwg: expected", self.ask("codeLens")[0]["command"]["title"])

    def test_actions_write_the_missing_guard_and_the_precedence(self):
        self.text = "rule drop { y = f32(x: T[*s]) => y = x }\n"
        self.start()
        found = self.diagnostics(1)
        self.assertEqual([one["code"] for one in found], ["PW0287"])
        actions = self.ask("codeAction", range=self.whole(), context={"diagnostics": found})
        self.assertEqual([one["title"] for one in actions], ["Add the guard `where T == f32`"])
        self.change(applied(self.text, actions[0]["edit"]["changes"][self.uri]), 2)
        self.assertEqual(self.diagnostics(2), [])

    def test_actions_write_the_missing_guard_of_dims(self):
        self.text = "rule drop {\n  y = mm(x: T[n, 8], w: T[8, m])\n  => y = neg(x)\n}\npipeline p { walk { drop } }\n"
        self.start()
        found = self.diagnostics(1)
        self.assertEqual([(one["code"], one["severity"]) for one in found], [("PW0297", 2)])
        actions = self.ask("codeAction", range=self.whole(), context={"diagnostics": found})
        self.assertEqual([one["title"] for one in actions], ["Add the guard `where m == 8`"])
        self.change(applied(self.text, actions[0]["edit"]["changes"][self.uri]), 2)
        self.assertEqual(self.diagnostics(2), [])

    def test_an_overlap_is_offered_its_two_orders(self):
        self.text = (
            "rule one {\n  a = relu(x)\n  y = neg(a)\n  =>\n  y = silu(x)\n}\n"
            "rule two {\n  y = neg(x)\n  z = exp(y)\n  =>\n  z = sigmoid(x)\n}\n"
            "pass p = greedy { one, two }\npipeline q { p }\n"
        )
        self.start()
        warned = self.client.take(lambda m: any(d["code"] == "PW1150" for d in (m.get("params") or {}).get("diagnostics", [])))
        found = warned["params"]["diagnostics"]
        actions = self.ask("codeAction", range=found[0]["range"], context={"diagnostics": found})
        titles = {one["title"]: one for one in actions}
        self.assertEqual(set(titles), {"Write `rule one over two`", "Write `rule two over one`"})
        edited = applied(self.text, titles["Write `rule two over one`"]["edit"]["changes"][self.uri])
        self.assertIn("rule two over one {", edited)
        self.change(edited, 2)
        self.assertEqual(self.diagnostics(2), [])

    def test_a_file_that_is_used_is_seen_as_it_is_open(self):
        self.start()
        self.assertEqual(self.diagnostics(1), [])
        self.client.open(self.shared_uri, SHARED.replace("op scale_shift", "op scaled_shift"))
        while "PW0220" not in self.codes():  # verdicts may come first
            pass
        self.client.notify("textDocument/didClose", textDocument={"uri": self.shared_uri})
        while "PW0220" in self.codes():
            pass

    def test_nothing_is_answered_before_and_after_the_session(self):
        early = self.client.answer(self.client.request("textDocument/hover", {}))
        self.assertEqual(early["error"]["code"], -32002)
        self.client.open(self.uri, "rule")  # a notification that comes too early is dropped
        self.start()
        self.assertEqual(self.diagnostics(1), [])
        self.client.ask("shutdown")
        late = self.client.answer(self.client.request("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}}))
        self.assertEqual(late["error"]["code"], -32600)
        self.client.notify("exit")
        self.assertEqual(self.client.process.wait(600), 0)

    def test_a_flood_of_messages_is_held_back(self):
        self.start()
        big = json.dumps({"jsonrpc": "2.0", "method": "$/blob", "params": {"text": "x" * (1 << 18)}}).encode()
        status, most = Path(f"/proc/{self.client.process.pid}/status"), 0
        for i in range(2000):  # 500 MiB, faster than they are read
            self.client.raw(b"Content-Length: %d\r\n\r\n%s" % (len(big), big))
            if i % 50 == 0:
                most = max(most, int(re.search(r"VmRSS:\s+(\d+) kB", status.read_text())[1]))
        self.assertEqual(self.client.end(), 0)
        self.assertLess(most, 300 << 10)

    def test_an_answer_comes_while_messages_come(self):
        self.start()
        stop = threading.Event()
        numbers = []

        def flood():
            while not stop.is_set():
                numbers.append(self.client.request("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}}))

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        while len(numbers) < 5000:
            time.sleep(0.01)
        self.client.answer(numbers[-1])  # while more come
        stop.set()
        thread.join()
        self.assertEqual(self.client.end(), 0)

    def test_a_text_without_a_file(self):
        self.start()
        self.client.open("untitled:Untitled-1", "rule r { y = relu(x: T[*s]) => y = rellu(x) }\n")
        found = self.client.notification("textDocument/publishDiagnostics", uri="untitled:Untitled-1")["diagnostics"]
        self.assertEqual([(one["code"], one["range"]["start"]["character"]) for one in found], [("PW0220", 35)])

    def test_a_graph_has_the_diagnostics_of_a_graph(self):
        self.start()
        uri = Path(self.path("open.pwg")).as_uri()
        self.client.open(uri, GRAPH.replace("neg(neg(c))", "neg(neg(d))"))
        found = self.client.notification("textDocument/publishDiagnostics", uri=uri)["diagnostics"]
        self.assertEqual([one["range"]["start"]["line"] for one in found], [6])
        where = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 16}}
        self.assertEqual(self.client.ask("textDocument/definition", **where)[0]["range"]["start"], {"line": 3, "character": 2})

    def test_codes_and_words_in_backquotes(self):
        self.text = 'test t {\n  graph { in x: f32[n]  y = relu(x)  out y }\n  apply dce\n  expect none because N08 "x"\n}\nrule r { y = relu(many) => y = neg(many) }\n'
        self.start()
        self.assertIn("extra users", self.ask("hover", "N08", 1)["contents"]["value"])
        found = self.diagnostics(1)
        self.assertEqual([one["code"] for one in found], ["PW0109"])
        actions = self.ask("codeAction", range=found[0]["range"], context={"diagnostics": found})
        self.assertEqual([one["title"] for one in actions], ["Write `many` in backquotes"])
        self.assertIn("relu(`many`)", applied(self.text, actions[0]["edit"]["changes"][self.uri]))

    def test_an_attribute_that_has_to_be_written(self):
        self.text = "op scaled(x: T[*s]) {by: float} -> y: T[*s] { y = T(f32(x) * by) }\nrule r { y = scaled(x) => y = neg(x) }\n"
        self.start()
        found = self.diagnostics(1)
        self.assertEqual([one["code"] for one in found], ["PW0235"])
        actions = self.ask("codeAction", range=found[0]["range"], context={"diagnostics": found})
        edited = {one["title"]: applied(self.text, one["edit"]["changes"][self.uri]) for one in actions}
        self.assertIn("scaled(x){by} =>", edited["Write `{by}`"])
        self.assertIn("scaled(x){..} =>", edited["Write `{..}`"])

    def test_the_end_of_the_input_is_an_end(self):
        self.start()
        self.client.process.stdin.close()
        self.assertEqual(self.client.process.wait(600), 1)

    def test_nothing_is_needed_to_end(self):
        done = subprocess.run([BIN / "pwr", "lsp"], input=b"", capture_output=True, timeout=3600, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b""))


if __name__ == "__main__":
    unittest.main()
