#!/usr/bin/python3
"""All orders of eight passes of the library on 32 layers: the best order, as a pipeline, makes what explore says, and thefts are those of runs."""
import json
import time
import unittest

from program import ProgramTest

PASSES = "norm,rope,norm_quant,attention_quant,activation,activation_quant,allreduce,allreduce_quant"


class Orders(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plain = cls.make("bf16.json", "generate", "llama", "--layers", "32")
        cls.fp8 = cls.make("fp8.json", "generate", "llama", "--layers", "32", "--quant", "fp8", "--tp", "2")

    def explore(self, graph, *more):
        begin = time.monotonic()
        found = json.loads(self.pwr("explore", graph, "-r", "llm", "--passes", PASSES, "--by", "nodes,bytes", *more, "--format", "json").stdout)
        self.assertLess(time.monotonic() - begin, 10)
        return found

    def nodes(self, graph, text):
        """Of the graph after a pipeline, and how often each rule was applied."""
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

    def test_what_cannot_be_asked_is_said(self):
        for more, code in (
            (["--before", "norm"], "PW1418"),
            (["--before", "norm:nrm"], "PW1101"),
            (["--by", "seconds"], "PW1402"),
            (["--passes", "nrm"], "PW1101"),
        ):
            done = self.pwr("explore", self.plain, "-r", "llm", "-p", "o1", *more, "--diagnostics", "json", code=2)
            self.assertIn(code, done.stderr)


if __name__ == "__main__":
    unittest.main()
