#!/usr/bin/python3
"""Extensions of a run in Python: a backend, an extern of rules, and a hook that moves keys and values from one run to another."""
import tempfile
import unittest
from pathlib import Path

import numpy as np

import piecewise as pw

GRAPH = """
graph block {
  symbol n in 1..64 tokens
  in x: f32[n, COLUMNS]
  a = relu(x)
  y = neg(a)
  out y
}
"""
RULES = """
extern pred even(number: int)
rule r { y = relu(x: f32[n, d])  where even(d)  =>  y = maximum(x, 0) }
pass p = greedy { r }
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


class Backends(Case):
    def run_on(self, backend):
        return pw.run_model(self.file("g.pwg", GRAPH.replace("COLUMNS", "8")), tokens=[3], backend="mine", backends={"mine": backend}, check=True)

    def test_one_that_is_right_passes_the_check(self):
        pieces = []

        def right(graph):
            pieces.append([node.op for node in graph.nodes])
            return lambda x: -np.maximum(x, 0)

        self.assertEqual(self.run_on(right)["failed"], 0)
        self.assertEqual(pieces, [["relu", "neg"]])

    def test_one_that_is_wrong_is_found(self):
        self.assertEqual(self.run_on(lambda graph: np.zeros_like)["failed"], 1)

    def test_what_it_raises_comes_back_and_what_it_forgets_is_said(self):
        def broken(*arrays):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            self.run_on(lambda graph: broken)
        with self.assertRaisesRegex(pw.Error, "output y is"):
            self.run_on(lambda graph: lambda x: x[:, :2])
        with self.assertRaisesRegex(pw.Error, "0 arrays for 1 output"):
            self.run_on(lambda graph: lambda x: [])


class Externs(Case):
    def test_it_decides_where_a_rule_matches(self):
        for columns, times in (("8", 1), ("7", 0)):
            session = pw.Session()
            request = []
            session.bind_extern("even", ["int"], lambda number: request.append(number) or number % 2 == 0)
            graph = session.loads(GRAPH.replace("COLUMNS", columns), "g.pwg")
            run = session.run(graph, session.rules([str(self.file("r.pwr", RULES))]), "p")
            self.assertEqual(run.count("r"), times)
            self.assertEqual(set(request), {int(columns)})

    def test_a_wrong_kind_is_said(self):
        with self.assertRaisesRegex(pw.Error, "there is no kind `number`"):
            pw.Session().bind_extern("even", ["number"], lambda number: True)


class Sender:
    def __init__(self):
        self.sent = []

    def after(self, call):
        names = call.names_of("unified_attention")
        if names:
            self.sent.append((call.piece, call.sequences, call.read(names["k"]), call.read(names["v"])))


class Receiver:
    def __init__(self, sent):
        self.sent = list(sent)

    def before(self, call):
        names = call.names_of("unified_attention")
        if not names:
            return
        for value in (names["k"], names["v"]):
            call.write(value, np.zeros_like(call.read(value)))
        if self.sent:
            piece, sequences, k, v = self.sent.pop(0)
            assert (piece, sequences) == (call.piece, call.sequences)
            call.write(names["k"], k)
            call.write(names["v"], v)


class Hooks(Case):
    def test_keys_and_values_go_from_a_run_to_another(self):
        model = self.folder / "model.json"
        model.write_text(pw.generate("llama", layers=2, hidden=64, heads=4, kv_heads=2, ffn=96, vocab=64).json())
        steps = self.file("steps.txt", "1:5\n1:1 2:3\n")
        for backend in ({"backend": "eager"}, {"backend": "cpu"}, {"backend": "cuda", "driver": "host"}):
            with self.subTest(**backend):

                def outputs(hook):
                    done = pw.run_model(model, "llm", "o2", steps=str(steps), sizes=[1, 2, 4, 8], max_tokens=24, hook=hook, **backend)
                    return [array.tobytes() for step in done["graphs"][0]["outputs"] for array in step.values()]

                alone, sender = outputs(None), Sender()
                self.assertEqual(outputs(sender), alone)
                self.assertEqual(len(sender.sent), 4)
                self.assertNotEqual(outputs(Receiver([])), alone)
                self.assertEqual(outputs(Receiver(sender.sent)), alone)

    def test_what_it_may_not_have_is_an_error(self):
        class Wrong:
            def before(self, call):
                call.write(call.inputs[0], call.read(call.inputs[0]))

        with self.assertRaisesRegex(pw.Error, "input of the graph"):
            pw.run_model(self.file("g.pwg", GRAPH.replace("COLUMNS", "8")), tokens=[3], hook=Wrong())


class Artifacts(Case):
    def test_what_was_compiled_runs(self):
        graph, output = self.file("g.pwg", GRAPH.replace("COLUMNS", "8")), self.folder / "g.pwx"
        wanted = pw.run_model(graph, "llm", "o2", tokens=[3], backend="cpu")["graphs"][0]
        messages = pw.compile_model(graph, "llm", "o2", output=output, backend="cpu")
        self.assertIn("1 graph", messages[-1])
        done = pw.run_model(output, tokens=[3], check=True)
        self.assertEqual(done["failed"], 0)
        self.assertEqual(done["graphs"][0]["outputs"][0]["y"].tobytes(), wanted["outputs"][0]["y"].tobytes())
        eager = pw.run_model(graph, "llm", "o2", tokens=[3])["graphs"][0]
        alone = pw.run_model(output, tokens=[3], native=False)["graphs"][0]
        self.assertEqual(alone["kernels"], {})
        self.assertEqual(alone["outputs"][0]["y"].tobytes(), eager["outputs"][0]["y"].tobytes())


if __name__ == "__main__":
    unittest.main()
