#!/usr/bin/python3
"""pwr plan and pwr sizes from outside: sizes that are kept and named, dispatch, memory, counters, plans that differ."""
import json
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402


class Plan(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.make(
            "model.json", "generate", "llama", "--layers", "2", "--hidden", "128", "--heads", "8", "--kv-heads", "2", "--ffn", "256", "--vocab", "512"
        )

    def rows(self, *args):
        return json.loads(self.pwr(*args, "--format", "json").stdout)

    def test_dropped_sizes_are_named(self):
        done = self.pwr("plan", self.model, "--sizes", "1,2,4,15", "--sequence-parallel", "2")
        self.assertIn("capture sizes 1, 15 are dropped", done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["capture_sizes"], [2, 4])
        self.assertEqual(len(plan["notes"]), 1)
        self.assertIn("PW0726", self.pwr("plan", self.model, "--sizes", "1,3", "--sequence-parallel", "2", code=3).stderr)

    def test_sizes_of_the_rules_above_the_maximum_are_named(self):
        graph = self.file("small.pwg", "graph g { symbol n in 1..64 tokens  in x: f32[n, 8]\n  y = relu(x)\n  out y }\n")
        some = self.file("some.pwr", "capture { sizes 8, 64, 65, 512 }\n")
        done = self.pwr("plan", graph, "-r", some)
        self.assertIn("capture sizes 65, 512 of the rules are omitted: a step has at most 64 tokens", done.stderr)
        self.assertEqual(json.loads(done.stdout)["capture_sizes"], [8, 64])
        none = self.file("none.pwr", "capture { sizes 128, 256 }\n")
        done = self.pwr("plan", graph, "-r", none)
        self.assertIn("capture sizes 128, 256 of the rules are omitted", done.stderr)
        self.assertIn("the default sizes are planned", done.stderr)
        self.assertEqual(json.loads(done.stdout)["capture_sizes"][:3], [1, 2, 4])
        one = self.pwr("plan", graph, "-r", self.file("one.pwr", "capture { sizes 8, 65 }\n"))
        self.assertIn("capture size 65 of the rules is omitted", one.stderr)
        many = self.pwr("plan", graph, "-r", self.file("many.pwr", "capture { sizes 8, 72, 80, 88, 96, 104, 112 }\n"))
        self.assertIn("capture sizes 72, 80, 88, 96 and 2 more of the rules are omitted", many.stderr)
        self.assertNotIn("omitted", self.pwr("plan", graph, "-r", self.file("all.pwr", "capture { sizes 8, 64 }\n")).stderr)
        self.assertIn("PW0724", self.pwr("plan", graph, "--sizes", "8,65", code=3).stderr)

    def test_options_that_would_be_ignored_are_refused(self):
        for args in (
            ("--sizes", "1,2", "--size-cap", "8"),
            ("--sizes", ""),
            ("--ranges", ""),
            ("--compile-sizes", ""),
            ("--loras", ""),
            ("-o", ""),
            ("--mode", ""),
        ):
            done = self.pwr("plan", self.model, *args, code=2)
            self.assertEqual(done.stdout, "")
            self.assertIn(args[0], done.stderr)
        rules = self.file("sizes.pwr", "capture { sizes 8, 16 }\n")
        self.assertIn("--size-cap has no effect", self.pwr("plan", self.model, "-r", rules, "--size-cap", "8").stderr)
        self.assertEqual(json.loads(self.pwr("plan", self.model, "--size-cap", "8").stdout)["capture_sizes"], [1, 2, 4, 8])

    def test_dispatch_is_explained(self):
        (graph,) = self.rows(
            "plan",
            self.model,
            "--sequence-parallel",
            "8",
            "--size-cap",
            "256",
            "--explain-dispatch",
            "10",
            "--explain-dispatch",
            "300",
            "--explain-dispatch",
            "64x1,5",
        )["graphs"]
        rows = graph["dispatch"]
        self.assertEqual([(row["runs_as"], row["mode"]) for row in rows], [(16, "piecewise"), (304, "none"), (72, "piecewise")])
        for bad in ("", "x", "0", "1,,2", "3x", "99999999x1", "1x99999999999999999999"):
            self.pwr("plan", self.model, "--explain-dispatch", bad, code=2)

    def test_counters(self):
        args = ("plan", self.model, "--sizes", "1,2", "--stats")
        numbers = {row["counter"]: row["number"] for row in self.rows(*args)["counters"]}
        self.assertEqual(
            numbers, {"graphs_seen": 1, "pieces": 5, "capturable_pieces": 3, "piece_classes": 3, "backend_compilations": 3, "graphs_captured": 6}
        )
        exact = {row["counter"]: row["number"] for row in self.rows(*args, "--ranges", "8,32", "--compile-sizes", "16,64,128")["counters"]}
        self.assertEqual(exact["backend_compilations"], 18)

    def test_memory_falls_with_the_size(self):
        rows = self.rows("plan", self.model, "--sizes", "1,8,64", "--memory")["graphs"][0]["memory"]
        self.assertEqual([row["key"] for row in rows], ["64 tokens", "8 tokens", "1 token", "8192 tokens"])
        live = [row["live_bytes"] for row in rows]
        self.assertEqual(sorted(live[:3], reverse=True), live[:3])
        self.assertGreaterEqual(rows[3]["arena_bytes"], rows[3]["live_bytes"])

    def test_plans_are_compared(self):
        one, two, three = self.path("one.json"), self.path("two.json"), self.path("three.json")
        for out, extra in ((one, ()), (two, ()), (three, ("--ranges", "8"))):
            self.pwr("plan", self.model, "-o", out, *extra)
        self.assertEqual(Path(one).read_bytes(), Path(two).read_bytes())
        self.assertEqual(self.pwr("plan", "--diff", one, two).stdout, "")
        self.assertEqual(self.pwr("plan", "--diff", one, three, code=1).stdout, "ranges: [1..8192] → [1..8, 9..8192]\n")
        Path(two).write_text("{}", encoding="utf-8")
        self.assertIn("PW0741", self.pwr("plan", "--diff", one, two, code=3).stderr)
        self.pwr("plan", "--diff", one, self.path("absent.json"), code=3)
        self.pwr("plan", code=2)

    def test_sizes_are_chosen_and_used(self):
        log = self.path("server.log")
        Path(log).write_text(
            "INFO **CUDAGraph Stats:**\nINFO | Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |\n"
            "INFO |---|---|---|---|---|\nINFO | 7 | 8 | 1 | FULL | 90 |\nINFO | 100 | 104 | 4 | PIECEWISE | 10 |\n",
            encoding="utf-8",
        )
        chosen = self.pwr("sizes", self.model, "--histogram", log, "--list").stdout.strip()
        self.assertEqual(chosen, "7,100")
        self.assertEqual(self.pwr("sizes", self.model, "--histogram", log, "--list", "--graphs", "0").stdout.strip(), "")
        plan = json.loads(self.pwr("plan", self.model, "--sizes", chosen).stdout)
        self.assertEqual(plan["capture_sizes"], [7, 100])
        Path(log).write_text("7 many\n", encoding="utf-8")
        self.assertIn("PW0731", self.pwr("sizes", self.model, "--histogram", log, code=3).stderr)

    def test_a_run_by_a_plan_is_that_run(self):
        plan, again, steps = self.path("run_plan.json"), self.path("again"), self.path("run_steps.txt")
        Path(steps).write_text("0:3\n0:1 1:2\n", encoding="utf-8")
        self.pwr("plan", self.model, "--sizes", "2,4,8", "--max-tokens", "64", "-o", plan)
        args = ("run", self.model, "--backend", "cuda", "--driver", "host", "--strict", "--steps", steps)
        rows = self.rows(*args, "--plan", plan, "--report", again)["graphs"][0]["steps"]
        self.assertEqual([(row["tokens"], row["runs_as"]) for row in rows], [(3, 4), (3, 4)])
        once = Path(again, "plan.json").read_text(encoding="utf-8")
        self.assertEqual(len(json.loads(once)["memory"]["scratch"]), 5)
        self.rows(*args, "--plan", str(Path(again, "plan.json")), "--report", self.path("third"))
        self.assertEqual(once, Path(self.path("third"), "plan.json").read_text(encoding="utf-8"))
        self.rows("run", self.model, "--plan", str(Path(again, "plan.json")), "--steps", steps)
        # Another graph, other options, a place that is too small.
        self.assertIn("PW0744", self.pwr("run", self.model, "-r", "llm", "-p", "o2", "--plan", plan, code=3).stderr)
        self.pwr("run", self.model, "--plan", plan, "--sizes", "1", code=2)
        self.assertIn("PW1256", self.pwr(*args, "--plan", str(Path(again, "plan.json")), "--grouping", "none", code=3).stderr)
        damaged = json.loads(once)
        damaged["memory"]["slots"][0]["bytes"] //= 2
        Path(plan).write_text(json.dumps(damaged), encoding="utf-8")
        self.assertIn("PW0745", self.pwr("run", self.model, "--plan", plan, code=3).stderr)

    def test_the_frontier_is_printed_and_drawn(self):
        svg = self.path("frontier.svg")
        rows = self.rows("sizes", self.model, "-o", svg)["rows"]
        for traffic in ("lognormal", "bimodal", "uniform"):
            own = [row for row in rows if row["traffic"] == traffic and row["set"] != "default"]
            times = [row["above_least_percent"] for row in own]
            self.assertEqual(times, sorted(times, reverse=True))
            self.assertEqual(sum(row["set"] == "chosen" for row in own), 1)
        drawn = Path(svg).read_text(encoding="utf-8")
        self.assertEqual(drawn.count("<polyline"), 3)
        self.pwr("sizes", self.model, "-o", self.path("frontier.gif"), code=2)


if __name__ == "__main__":
    unittest.main()
