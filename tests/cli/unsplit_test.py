#!/usr/bin/python3
"""Graphs that are rewritten but not split, steps that are interrupted by host ops, what must not be captured, counters compared with vLLM's, sizes known only at run time."""
import json
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402

SMALL = ("--hidden", "64", "--heads", "4", "--ffn", "128", "--vocab", "128")
IN_VLLM = {
    "graphs_seen": "num_graphs_seen",
    "pieces": "num_piecewise_graphs_seen",
    "capturable_pieces": "num_piecewise_capturable_graphs_seen",
    "piece_classes": "",
    "backend_compilations": "num_backend_compilations",
    "graphs_captured": "num_cudagraph_captured",
}
# An op that runs on the host only, between two that a device has; and the user's own attention, which no graph may hold.
BREAKS = """graph breaks {
  op running(x: T[n, d]) -> y: T[n, d] splitting TRAIT { y = cumsum(x){dim = 1} }
  symbol n in 1..64 tokens
  in x: f32[n, 64]
  in weight w: f32[64], v: f32[64, 64]
  a = rms_norm(relu(x), w)
  b = running(a)
  c = rms_norm(mm(b, v) + a, w)
  d = running(c)
  y = neg(d) * a
  out y
}
"""


class Unsplit(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.llama = cls.make("llama.pwg", "generate", "llama3", "--layers", "3", *SMALL)
        cls.short = cls.make("short.pwg", "generate", "llama3", "--layers", "1", *SMALL)

    def counters(self, *args):
        rows = json.loads(self.pwr("--format", "json", "plan", *args, "--stats").stdout)["counters"]
        self.assertEqual({row["counter"]: row["vllm"] for row in rows}, IN_VLLM)
        return [row["number"] for row in rows if row["counter"] != "piece_classes"]

    def saved(self, name, *args):
        path = self.path(name)
        done = self.pwr("run", *args, "--save", path)
        return Path(path).read_bytes(), done.stderr

    def breaking(self, trait=""):
        return self.file(f"breaks{trait}.pwg", BREAKS.replace("TRAIT", trait))

    # ---- counters

    def test_counters_with_and_without_a_split(self):
        plain = (self.llama, "--fold", "none", "--sizes", "1,2")
        self.assertEqual(self.counters(*plain), [1, 7, 4, 4, 8])
        self.assertEqual(self.counters(*plain, "--no-split"), [1, 1, 1, 1, 2])
        self.assertEqual(self.counters(*plain, "--mode", "none"), [1, 0, 0, 0, 0])

    def test_counters_of_several_graphs_add_up(self):
        options = ("--fold", "none", "--sizes", "1,2")
        one, other = self.counters(self.llama, *options), self.counters(self.short, *options)
        self.assertEqual(self.counters(self.llama, self.short, *options), [a + b for a, b in zip(one, other)])
        self.pwr("plan", self.llama, self.short, code=2)
        self.pwr("plan", self.llama, self.path("absent.pwg"), "--stats", code=3)

    def test_the_largest_size_follows_the_tokens(self):
        for most, cap, last in ((257, 2048, 257), (2048, 257, 256), (250, 512, 250), (2048, 512, 512)):
            plan = json.loads(self.pwr("plan", self.llama, "--max-tokens", str(most), "--size-cap", str(cap)).stdout)
            self.assertEqual(plan["capture_sizes"][-1], last, (most, cap))

    # ---- the same fusions and numbers

    def test_fusions_do_not_depend_on_the_split(self):
        done = self.pwr("split", self.llama, "-r", "llm", "-p", "o2", "--no-split")
        self.assertIn("1 piece, 1 capturable", done.stderr)
        split = self.pwr("split", self.llama, "-r", "llm", "-p", "o2")
        nodes = [sum(int(row.split()[3]) for row in text.splitlines()[1:] if row.strip()) for text in (done.stdout, split.stdout)]
        self.assertEqual(nodes[0], nodes[1])
        self.pwr("split", self.llama, "--no-split", "--at", "mm", code=2)

    def test_an_unsplit_graph_has_the_numbers_of_its_pieces(self):
        for backend in (("eager",), ("cpu", "--strict"), ("cuda", "--driver", "host", "--strict", "--sizes", "8")):
            args = (self.short, "-r", "llm", "-p", "o2", "--tokens", "1,7", "--backend", *backend)
            whole, messages = self.saved("whole.st", *args, "--no-split")
            self.assertIn("1 piece", messages)
            self.assertEqual(whole, self.saved("pieces.st", *args)[0], backend)

    # ---- what must not be captured

    def test_what_must_not_be_captured_is_found_before(self):
        plan = json.loads(self.pwr("plan", self.breaking(), "--no-split").stdout)
        self.assertEqual(plan["mode"], "none")
        self.assertIn("op running is not declared capturable", plan["mode_reason"])
        self.assertEqual([step["reason"] for step in plan["steps"]], ["contains op running, which must not be captured"])
        self.assertEqual(self.counters(self.breaking(), "--no-split"), [1, 0, 0, 0, 0])
        for mode in ("full", "full_decode_only", "full_and_piecewise"):
            lowered = json.loads(self.pwr("plan", self.breaking(), "--mode", mode).stdout)
            self.assertEqual(lowered["mode"], "piecewise")
            self.assertIn("op running is not declared capturable", lowered["mode_reason"])
        self.assertIn("not in {none,piecewise,full", self.pwr("plan", self.llama, "--mode", "breakable", code=2).stderr)

    def test_an_op_that_is_only_asked_to_split_is_captured(self):
        plan = json.loads(self.pwr("plan", self.llama, "--at", "silu_and_mul", "--mode", "full").stdout)
        self.assertEqual((plan["mode"], plan.get("mode_reason", "")), ("full", ""))

    # ---- steps that break

    def test_a_step_breaks_where_the_host_runs(self):
        args = (self.breaking("capturable"), "--tokens", "1,7,8,40", "--sizes", "8", "--backend", "cuda", "--driver", "host", "--strict")
        broken, messages = self.saved("broken.st", *args, "--mode", "full", "--check")
        self.assertIn("a captured step is split where the host runs: piece_1 (running), piece_3 (running)", messages)
        self.assertRegex(messages, r"3 graphs, 3 of them whole steps, 3 executables")
        pieces, messages = self.saved("pieces.st", *args, "--mode", "piecewise")
        self.assertNotIn("breaks", messages)
        self.assertEqual(broken, pieces)
        self.assertEqual(broken, self.saved("eager.st", *args, "--mode", "none")[0])
        self.assertEqual(broken, self.saved("unsplit.st", *args, "--no-split")[0])

    # ---- times

    def test_the_report_says_what_compiling_and_capturing_took(self):
        args = ("run", self.short, "--tokens", "3", "--sizes", "1,4", "--backend", "cuda", "--driver", "host")
        self.pwr(*args, "--times", "--report", self.path("timed"))
        text = Path(self.path("timed"), "report.txt").read_text()
        for row in (r"compile +all +[\d.]+ \wS?", r"capture +4 +[\d.]+ ", r"capture +1 +[\d.]+ ", r"num_cudagraph_captured"):
            self.assertRegex(text, row)
        self.pwr(*args, "--report", self.path("plain"))
        plain = Path(self.path("plain"), "report.txt").read_text()
        self.assertNotRegex(plain, r"compile +all")
        self.assertIn("num_cudagraph_captured", plain)

    # ---- sizes that are known only at run time

    def test_a_size_known_at_run_time_is_the_tokens(self):
        dump = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "Sym(SIZE)", arg1_1: "bf16[SIZE, 64]", arg2_1: "bf16[64]"):
        ge: "Sym(SIZE >= 1)" = arg0_1 >= 1
        _assert_scalar = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression SIZE >= 1 on node 'ge'")
        range = torch.ops.aten.sym_constrain_range_for_size.default(arg0_1, min = 1, max = 64)
        rms_norm: "bf16[SIZE, 64]" = torch.ops.vllm_ir.rms_norm.default(arg1_1, arg2_1, 1e-06)
        return (rms_norm,)
"""
        outputs = []
        for size in ("u0", "s72"):
            path = self.file(f"{size}.fx.txt", dump.replace("SIZE", size))
            self.assertIn(f"symbol {size} in", self.pwr("import", path, "-o", "-").stdout)
            outputs.append(self.saved(f"{size}.st", path, "--tokens", "1,7,33", "--check")[0])
        self.assertEqual(*outputs)

    def test_a_size_that_nothing_bounds_is_refused(self):
        graph = """graph g {
  op chosen(x: T[n, d]) {rows: int} -> y: T[rows, d] { y = slice(x){dim = 0, end = rows} }
  symbol n in 1..64 tokens
  in x: f32[n, 8], z: f32[u1, 8]
  y = relu(x)
  v = relu(z)
  out y, v
}
"""
        messages = self.pwr("plan", self.file("unbounded.pwg", graph), code=3).stderr
        self.assertIn("dim u1 is dynamic", messages)
        self.pwr("plan", self.file("bounded.pwg", graph.replace("  in x", "  symbol u1 in 1..16\n  in x")))


if __name__ == "__main__":
    unittest.main()
