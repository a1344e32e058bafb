#!/usr/bin/python3
"""All orders of eight passes of the library on 32 layers: the best order, run as a pipeline, gives the result that explore reports, and thefts are those of runs."""
import json
import re
import resource
import shlex
import subprocess
import unittest
from pathlib import Path

from program import BIN, ProgramTest

PASSES = "norm,rope,norm_quant,attention_quant,activation,activation_quant,allreduce,allreduce_quant"


class Orders(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plain = cls.make("bf16.json", "generate", "llama", "--layers", "32")
        cls.fp8 = cls.make("fp8.json", "generate", "llama", "--layers", "32", "--quant", "fp8", "--tp", "2")

    @staticmethod
    def seconds():
        """The processor time of the programs that have ended, which other work on the machine does not change."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def explore(self, graph, *more):
        begin = self.seconds()
        found = json.loads(self.pwr("explore", graph, "-r", "llm", "--passes", PASSES, "--by", "nodes,bytes", *more, "--format", "json").stdout)
        self.assertLess(self.seconds() - begin, 10)
        return found

    def nodes(self, graph, text):
        """Returns the cost of the graph after a pipeline, and how often each rule was applied."""
        rules = self.file("order.pwr", 'use "llm"\n' + text)
        after = self.path("after.json")
        done = self.pwr("opt", graph, "-r", rules, "-p", "best_order", "-D", "tp=2", "--stats", "-o", after, "--format", "json")
        counts = {row["rule"]: row["matches"] for row in json.loads(done.stdout)["rules"]}
        return json.loads(self.pwr("stats", after, "--format", "json").stdout)["nodes"], counts

    def test_forty_thousand_orders(self):
        plain = self.explore(self.plain)
        self.assertEqual((plain["orders"], plain["graphs"]), (40320, 1))
        found = self.explore(self.fp8, "-D", "tp=2")
        self.assertEqual(found["orders"], 40320)
        self.assertEqual(sum(row["orders"] for row in found["ends"]), 40320)
        best, written = found["ends"][0], next(row for row in found["ends"] if row["written"])
        self.assertLess(best["nodes"], written["nodes"])
        self.assertEqual(self.nodes(self.fp8, found["suggestion"])[0], best["nodes"])
        for row in (written, found["ends"][-1]):
            self.assertEqual(self.nodes(self.fp8, "pipeline best_order { " + " ".join(row["first_order"]) + " }")[0], row["nodes"])

    def test_the_two_orders_show_each_theft(self):
        thefts = self.explore(self.fp8, "-D", "tp=2")["thefts"]
        self.assertTrue(thefts)
        for theft in thefts:
            counts = [self.nodes(self.fp8, "pipeline best_order { " + " ".join(theft[which]) + " }")[1] for which in ("losing", "keeping")]
            fired = [sum(n for rule, n in each.items() if rule.split("[")[0] == theft["victim"].split("[")[0]) for each in counts]
            self.assertEqual(fired[0] + theft["lost"], fired[1], theft)

    def test_the_whole_pipeline_of_the_library(self):
        model = self.make("layer.json", "generate", "llama", "--layers", "1", "--quant", "fp8")
        done = self.pwr("explore", model, "-r", "llm", "-p", "o2", "--format", "json")
        found = json.loads(done.stdout)
        passes = re.findall(r"pipeline o2 \{(.*?)\n\}", Path("rules/llm.pwr").read_text(encoding="utf-8"), re.DOTALL)[0]
        count = len([line for line in passes.splitlines() if line.strip()])
        self.assertGreater(count, 16)
        idle = next(row["passes"] for row in found["groups"] if row["group"].startswith("commute with all"))
        for row in found["ends"]:
            self.assertEqual(len(row["first_order"]) + len(idle), count)
        self.assertIn(f"{count - len(idle)} of {count} passes change the graph in some order", done.stderr)
        orders = 1
        for factor in range(2, count - len(idle) + 1):
            orders *= factor
        self.assertEqual(found["orders"], orders)
        if found["suggestion"]:  # all passes are in it
            self.assertEqual(len(found["suggestion"].splitlines()) - 2, count)

    def test_what_cannot_be_asked_is_said(self):
        for more, code in (
            (["--with", "tp"], "PW1403"),
            (["--with", "tq=1"], "PW0421"),
            (["--with", "tp=two"], "PW0422"),
            (["--token-ranges", "8"], "PW1402"),
            (["--token-ranges", "8..4"], "PW1402"),
            (["--token-ranges", "99999999..100000000"], "PW1109"),
            (["--over", "add_rms"], "PW1402"),
            (["--over", "add_rms,add_rmz"], "PW1101"),
            (["--sample", "5"], "PW1114"),
            (["--by", "measured_us", "--backend", "abacus"], "PW1405"),
            (["--before", "norm"], "PW1418"),
            (["--before", "norm:nrm"], "PW1101"),
            (["--by", "seconds"], "PW1402"),
            (["--passes", "nrm"], "PW1101"),
        ):
            done = self.pwr(
                "explore",
                self.plain,
                "-r",
                "llm",
                "-p",
                "o1",
                *more,
                "--diagnostics",
                "json",
                code=2 if code[:4] == "PW14" or code == "PW1101" else 3,
            )
            self.assertIn(code, done.stderr)


SETTINGS = """
param tp: int = 1
op relu_neg(x: T[*s]) -> (p: T[*s], q: T[*s]) { p = relu(x) q = neg(x) }
op neg_exp(x: T[*s]) -> (q: T[*s], r: T[*s]) { q = neg(x) r = exp(x) }
op three(x: T[*s]) -> (p: T[*s], q: T[*s], r: T[*s]) { p = relu(x) q = neg(x) r = exp(x) }
rule a_pair { p = relu(x) q = neg(x) => p, q = relu_neg(x) }
rule b_pair { q = neg(x) r = exp(x) => q, r = neg_exp(x) }
rule all_three { p = relu(x) q, r = neg_exp(x) => p, q, r = three(x) }
rule small { y = abs(abs(x: T[n, d])) where n <= 8 => y = abs(x) }
pass pair = greedy { a_pair, b_pair }
pass three_of = greedy { all_three }
pass few = greedy { small } when tp > 1
pipeline all { pair three_of few dce }
pipeline each { a_pair b_pair all_three dce }
"""
GRAPH = """graph g {
  symbol n in 1..64 tokens
  in x: f32[n, 64]
  h = tanh(x)  q = neg(h)  p = relu(h)  r = exp(h)
  y = abs(abs(p))
  out y, q, r
}
"""


class Settings(ProgramTest):
    def setUp(self):
        self.rules = self.file("settings.pwr", SETTINGS)
        self.graph = self.file("g.pwg", GRAPH)

    def explore(self, *more):
        return json.loads(self.pwr("explore", self.graph, "-r", self.rules, "-p", "all", *more, "--format", "json").stdout)

    def best(self, found):
        return {row["setting"]: row["best"] for row in found["settings"]}

    def test_values_of_params_and_ranges_of_tokens_make_combinations(self):
        found = self.explore("--with", "tp=1,2", "--token-ranges", "1..8,9..64")
        best = self.best(found)
        self.assertEqual(list(best), ["tp=1, tokens 1..8", "tp=1, tokens 9..64", "tp=2, tokens 1..8", "tp=2, tokens 9..64"])
        self.assertEqual([best[key] - min(best.values()) for key in best], [1, 1, 0, 1])
        self.assertEqual(found["orders"], 4 * 24)
        for tp in (1, 2):
            alone = self.explore("-D", f"tp={tp}")
            row = next(row for row in self.explore("--with", f"tp={tp}")["ends"] if row["written"])
            self.assertEqual(row, next(row for row in alone["ends"] if row["written"]))

    def test_an_item_is_the_options(self):
        item = """explore space {
  of all
  orders pair, three_of, few
  before pair: three_of
  subsets
  with tp in 1, 2
  tokens in 1..8, 9..64
  over a_pair, b_pair
  by nodes, bytes
}
"""
        Path(self.rules).write_text(SETTINGS + item)
        words = ["--passes", "pair,three_of,few", "--before", "pair:three_of", "--subsets", "--with", "tp=1,2"]
        words += ["--token-ranges", "1..8,9..64", "--over", "a_pair,b_pair", "--by", "nodes,bytes"]
        notice = json.loads(self.pwr("explore", self.graph, "-r", self.rules, "--space", "space", "--format", "json").stdout)
        self.assertEqual(notice, self.explore(*words))
        other = json.loads(self.pwr("explore", self.graph, "-r", self.rules, "--space", "space", "--by", "ops", "--format", "json").stdout)
        self.assertIn("ops", other["ends"][0])
        self.assertNotIn("bytes", other["ends"][0])
        self.assertIn("PW1101", self.pwr("explore", self.graph, "-r", self.rules, "--space", "spade", "--diagnostics", "json", code=2).stderr)

    def test_another_precedence_is_tried_and_suggested(self):
        found = self.explore("--over", "a_pair,b_pair")
        best = self.best(found)
        self.assertEqual(list(best), ["", "a_pair over b_pair", "b_pair over a_pair"])
        self.assertLess(best["b_pair over a_pair"], best[""])
        self.assertEqual(best["a_pair over b_pair"], best[""])
        self.assertTrue(found["suggestion"].startswith("rule b_pair over a_pair"))
        # As text: the rule with the `over` that was suggested.
        Path(self.rules).write_text(SETTINGS.replace("rule b_pair {", "rule b_pair over a_pair {"))
        self.assertEqual(self.explore()["ends"][0]["nodes"], best["b_pair over a_pair"])

    def test_a_circle_of_precedence_is_left_out(self):
        Path(self.rules).write_text(SETTINGS.replace("rule a_pair {", "rule a_pair over small {").replace("rule small {", "rule small over b_pair {"))
        done = self.pwr("explore", self.graph, "-r", self.rules, "-p", "all", "--over", "a_pair,b_pair", "--format", "json")
        self.assertEqual([row["setting"] for row in json.loads(done.stdout)["settings"]], ["", "a_pair over b_pair"])
        self.assertIn("forms a cycle with other precedence: b_pair over a_pair", done.stderr)

    def test_every_objective(self):
        names = ["nodes", "ops", "bytes", "launches", "peak_bytes", "modelled_us", "measured_us", "compile_ms"]
        options = ["-p", "each", "--by", ",".join(names), "--tokens", "32", "--repeats", "3", "--format", "json"]
        found = json.loads(self.pwr("explore", self.graph, "-r", self.rules, *options).stdout)
        self.assertGreater(len(found["ends"]), 1)
        for row in found["ends"]:
            self.assertTrue(all(row[name] > 0 for name in names), row)
        # The model moves what `bytes` counts, and launches once an op; so it is cheaper where both are.
        few, many = found["ends"][0], max(found["ends"], key=lambda row: (row["ops"], row["bytes"]))
        self.assertLess(few["modelled_us"], many["modelled_us"])
        plan = json.loads(self.pwr("plan", self.graph, "-r", self.rules, "-p", "each", "--quiet").stdout)
        written = next(row for row in found["ends"] if row["written"])
        self.assertEqual(written["peak_bytes"], plan["memory"]["arena_bytes"])
        self.assertEqual(written["launches"], plan_launches(self, self.graph, self.rules))


def plan_launches(test, graph, rules):
    """Launches of one step on the emulated device, as a dump counts them."""
    folder = test.path("dump")
    test.pwr("run", graph, "-r", rules, "-p", "each", "--backend", "cuda", "--driver", "host", "--tokens", "32", "--dump", folder)
    step = json.loads(Path(folder, "stats.json").read_text())["steps"][0]
    return step["kernels"] + step["library"]


MINE = """use "llm"
pipeline all { clean norm activation }
explore norms { of all  orders norm, clean  by nodes }
"""


class Examples(ProgramTest):
    def test_the_examples_of_help_run_as_they_stand(self):
        lines = re.findall(r"^  pwr (explore .*)$", self.pwr("explore", "--help").stdout, re.MULTILINE)
        self.assertGreaterEqual(len(lines), 5)
        for name in ("model", "a", "b"):
            self.make(name + ".json", "generate", "llama", "--layers", "1", "--quant", "fp8")
        self.file("mine.pwr", MINE)
        for part in ("1", "2"):
            done = self.in_folder(f"explore a.json b.json -r mine.pwr -p all --study part{part}.db --shard {part}/2")
            self.assertEqual(done.returncode, 0, done.stderr)
        for line in lines:
            done = self.in_folder(line)
            self.assertEqual(done.returncode, 0, line + "\n" + done.stderr)
            self.assertTrue(done.stdout, line)

    def in_folder(self, line):
        return subprocess.run([BIN / "pwr", *shlex.split(line)], cwd=self.folder.name, capture_output=True, text=True, timeout=300, check=False)


if __name__ == "__main__":
    unittest.main()
