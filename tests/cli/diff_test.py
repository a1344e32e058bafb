#!/usr/bin/python3
"""pwr diff from outside: exit codes, formats, what a pipeline did, inputs that are not graphs."""
import json
import random
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402

LLAMA = ["--layers", "6", "--hidden", "256", "--heads", "8", "--kv-heads", "2", "--ffn", "512", "--vocab", "512"]
DUMP = "examples/tiny-decoder.fx.txt"


def renamed(text, seed):
    """The graph with fresh names, no groups, and its inputs in another order."""
    graph, draw = json.loads(text), random.Random(seed)
    names = [i["name"] for i in graph["inputs"]] + [r["name"] for n in graph["nodes"] for r in n["results"]]
    fresh = [f"v{k}" for k in range(len(names))]
    draw.shuffle(fresh)
    new = dict(zip(names, fresh))
    for value in graph["inputs"]:
        value["name"] = new[value["name"]]
    draw.shuffle(graph["inputs"])
    for node in graph["nodes"]:
        node.pop("group", None)
        for result in node["results"]:
            result["name"] = new[result["name"]]
        node["name"] = node["results"][0]["name"]
        node["operands"] = [new.get(operand) for operand in node["operands"]]
    graph["outputs"] = [new[output] for output in graph["outputs"]]
    return json.dumps(graph)


class Diff(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plain = cls.make("plain.json", "generate", "llama", *LLAMA)
        cls.mixed = cls.make("mixed.json", "generate", "llama", *LLAMA, "--shuffle", "5")
        cls.fused = cls.make("fused.json", "opt", cls.plain, "-r", "llm", "-p", "o2")

    def ops(self, graph):
        return {row["op"]: row["nodes"] for row in json.loads(self.pwr("stats", graph, "--format", "json").stdout)["ops"]}

    def test_equal_up_to_names_and_order(self):
        text = Path(self.mixed).read_text(encoding="utf-8")
        other = self.file("renamed.json", renamed(text, 3))
        for graph in (self.plain, self.mixed, other):
            done = self.pwr("diff", self.plain, graph)
            self.assertEqual(done.stdout, "")
            self.assertIn("equal up to names and order (110 nodes)", done.stderr)
        self.assertIn("41 inputs are named differently", done.stderr)
        self.assertEqual(json.loads(self.pwr("diff", self.plain, other, "--format", "json").stdout)["rows"], [])

    def test_what_a_pipeline_did(self):
        before, after = self.ops(self.plain), self.ops(self.fused)
        for second in (self.fused, self.file("fused2.json", renamed(Path(self.fused).read_text(encoding="utf-8"), 4))):
            rows = json.loads(self.pwr("diff", self.plain, second, "--format", "json", code=1).stdout)["rows"]
            rows = [row for row in rows if row["op"] != "input"]
            for change, here, there in (("removed", before, after), ("added", after, before)):
                expected = {op: count - there.get(op, 0) for op, count in here.items() if count > there.get(op, 0)}
                found = {}
                for row in rows:
                    if row["change"] == change:
                        found[row["op"]] = found.get(row["op"], 0) + row["times"]
                self.assertEqual(found, expected)
            self.assertEqual([row for row in rows if row["change"] == "changed"], [])
        done = self.pwr("diff", self.plain, self.fused, code=1)
        self.assertIn("rms_norm", done.stdout)
        self.assertIn("layers.0.mlp … final", done.stdout)
        self.assertIn("fused.json: 18 of 86 nodes are not in the other graph", done.stderr)

    def test_the_limit_says_what_it_leaves_out(self):
        args = ("diff", self.plain, self.fused, "--fold", "none")
        everything = self.pwr(*args, "--limit", "0", "--format", "csv", code=1).stdout.splitlines()
        some = self.pwr(*args, "--limit", "3", "--format", "csv", code=1)
        self.assertEqual(some.stdout.splitlines(), everything[:4])
        self.assertIn(f"and {len(everything) - 4} more rows", some.stderr)
        self.assertNotIn("more rows", self.pwr(*args, "--limit", "0", code=1).stderr)

    def test_dumps(self):
        text = Path(DUMP).read_text(encoding="utf-8")
        at = text.index("torch.ops.aten.silu.default")
        other = self.file("other.fx.txt", text[:at] + text[at:].replace("silu.default", "gelu.default", 1))
        symbol = ("--symbol", "n=arg0_1.0,arg1_1.0")
        self.pwr("diff", DUMP, DUMP, *symbol)
        rows = json.loads(self.pwr("diff", DUMP, other, *symbol, "--format", "json", code=1).stdout)["rows"]
        self.assertEqual([(row["change"], row["op"]) for row in rows], [("changed", "silu")])
        self.assertIn("op: silu → gelu", rows[0]["what"])

    def test_bad_input(self):
        self.pwr("diff", self.plain, code=2)
        self.pwr("diff", self.plain, self.fused, "--fold", "some", code=2)
        self.pwr("diff", self.plain, self.fused, "--limit", "-1", code=2)
        self.assertIn("absent.json", self.pwr("diff", self.plain, str(Path(self.folder.name, "absent.json")), code=3).stderr)
        self.pwr("diff", self.plain, self.file("cut.json", Path(self.plain).read_text(encoding="utf-8")[:300]), code=3)
        self.pwr("diff", self.plain, self.fused, "--symbol", "n=arg0_1.0", code=2)


if __name__ == "__main__":
    unittest.main()
