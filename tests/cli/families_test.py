#!/usr/bin/python3
"""pwr generate for the families of models: each is rewritten, cut, planned and run, plain and quantised, on one rank and on two."""
import json
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402

EXPERTS = ("llama4", "qwen3-moe", "mixtral", "deepseek-v2", "deepseek-v3", "gpt-oss")
FAMILIES = ("llama3", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "opt", "gpt2", *EXPERTS)
LAYERS = 4
CHECKED = "all outputs of all steps pass the check"


class Families(ProgramTest):
    def small(self, family, *options):
        """The path of a graph of four narrow layers, of which the first may have no experts and the last turns nothing."""
        sizes = ["--layers", LAYERS, "--hidden", 64, "--heads", 4, "--ffn", 128, "--vocab", 512]
        if "--kv-heads" not in options:
            sizes += ["--kv-heads", 4 if family in ("gemma", "opt", "gpt2", "deepseek-v2", "deepseek-v3") else 2]
        sizes += ["--experts", 4] if family in EXPERTS else []
        return self.make(f"{family}.pwg", "generate", family, *map(str, sizes), *options)

    def check_runs(self, model, *options):
        done = self.pwr("run", model, "-r", "llm", "-p", "o2", "--tokens", "2,7", "--check", *options)
        self.assertIn(CHECKED, done.stderr)

    def test_all_are_listed(self):
        text = self.pwr("generate", "--help").stdout
        for family in FAMILIES:
            self.assertRegex(text, rf"\b{family}\s+\(")

    def test_all_run(self):
        for family in FAMILIES:
            with self.subTest(family):
                self.check_runs(self.small(family))

    def test_all_run_compiled(self):
        for family in FAMILIES:
            with self.subTest(family):
                self.check_runs(self.small(family), "--backend", "cpu")

    def test_all_run_quantised(self):
        """Every row takes all experts: which are chosen is not continuous, and fp8 may round to another choice, before rewriting as after."""
        for quant in (["fp8"], ["fp8-token"], ["fp8-group", "--group", "16"], ["nvfp4"]):
            for family in FAMILIES:
                with self.subTest(family, quant=quant[0]):
                    all_experts = ["--topk", "4"] if family in EXPERTS else []
                    self.check_runs(self.small(family, *all_experts, "--quant", *quant))

    def test_all_run_on_two_ranks(self):
        for family in FAMILIES:
            with self.subTest(family):
                self.check_runs(self.small(family, "--tp", "2"), "-D", "tp=2", "--ranks", "2")

    def test_all_are_cut_at_attention_and_planned(self):
        for family in FAMILIES:
            with self.subTest(family):
                counters = self.pwr("plan", self.small(family), "-r", "llm", "-p", "o2", "--stats").stdout
                self.assertRegex(counters, rf"(?m)^pieces +{2 * LAYERS + 1}\b")

    def test_all_choose_a_token(self):
        for family in FAMILIES:
            for head in ("greedy", "temperature=0.8,top_k=40,top_p=0.9"):
                with self.subTest(family, head=head):
                    model = self.small(family, "--lm-head", head)
                    self.assertIn("write ids = ", Path(model).read_text(encoding="utf-8"))
                    self.pwr("run", model, "-r", "llm", "-p", "o2", "--tokens", "2,7")

    def test_a_chosen_token_is_the_reference_s(self):
        for options in ([], ["--backend", "cpu"]):
            self.check_runs(self.small("llama3", "--lm-head", "greedy"), *options)
        self.check_runs(self.small("llama3", "--lm-head", "greedy", "--tp", "2"), "-D", "tp=2", "--ranks", "2")

    def test_a_way_to_choose_that_does_not_exist_is_refused(self):
        for head in ("best", "temperature=-1", "top_k=0", "top_p=0", "top_p=1.5", "temperature=1,", "temperature=nan"):
            for family in ("llama", "qwen3"):
                self.assertIn("--lm-head", self.pwr("generate", family, "--lm-head", head, code=3).stderr)

    def test_keys_and_values_last_over_steps(self):
        self.assertIn(CHECKED, self.pwr("run", self.small("llama3"), "--steps", "examples/chat.steps", "--check").stderr)

    def test_a_write_to_the_cache_is_captured_with_its_attention(self):
        model = self.small("llama3")
        done = self.pwr("run", model, "--backend", "cuda", "--driver", "host", "--mode", "full", "--sizes", "8", "--tokens", "7", "--check")
        self.assertIn(CHECKED, done.stderr)
        self.assertIn("1 graph, 1 of them whole steps", done.stderr)

    def test_opaque_ops_are_planned_and_refused_to_run(self):
        model = self.small("deepseek-v3", "--opaque")
        ops = {row["op"]: row["nodes"] for row in json.loads(self.pwr("stats", model, "--format", "json").stdout)["ops"]}
        self.assertEqual((ops["unified_mla_attention"], ops["moe_forward_shared"]), (LAYERS, LAYERS - 3))
        self.pwr("plan", model, "-r", "llm", "-p", "o2")
        self.assertIn("PW1201", self.pwr("run", model, "--tokens", "1", code=5).stderr)

    def test_each_rank_has_its_rows_of_the_vocabulary_and_one_the_biases(self):
        first, second = (Path(self.small("gpt2", "--tp", "2", "--rank", rank)).read_text(encoding="utf-8") for rank in "01")
        self.assertIn("first = 0, last = 256", first)
        self.assertIn("first = 256, last = 512", second)
        biases = [len(re.findall(r"in weight l\d+_\w+_b: ", text)) for text in (first, second)]
        self.assertEqual(biases[0] - biases[1], 2 * LAYERS)

    def test_what_does_not_fit_is_refused(self):
        for args, words in (
            (["qwen2", "--experts", "4"], "qwen2 has no such part"),
            (["llama3", "--kv-rank", "64"], "llama3 has no such part"),
            (["llama", "--head", "64"], "llama has no such part"),
            (["llama3", "--kv-heads", "5"], "the number of query heads must be a multiple of it"),
            (["llama3", "--tp", "3"], "must be a multiple"),
            (["llama3", "--tp", "2", "--rank", "2"], "below --tp"),
            (["llama3", "--hidden", "64", "--heads", "4", "--quant", "fp8-group"], "not a multiple of --group 128"),
            (["mixtral", "--experts", "4", "--topk", "5"], "5 is not in 1..4"),
            (["llama3", "--layers", "100000"], "--layers"),
        ):
            with self.subTest(args):
                self.assertIn(words, self.pwr("generate", *args, code=3).stderr)


if __name__ == "__main__":
    unittest.main()
