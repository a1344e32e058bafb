#!/usr/bin/python3
"""Generated steps from outside: their tokens, where they end, and many of them in one launch."""
import json
import sys
import unittest

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402

MODEL = "llama --layers 1 --hidden 64 --heads 2 --kv-heads 1 --ffn 96 --vocab 64".split()
CUDA = "--backend cuda --driver host --sizes 1,2,8 --max-tokens 8 --mode full".split()
SAMPLED = "temperature=1.5,top_k=20"


class Generation(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, choice in (("greedy", "greedy"), ("sampled", SAMPLED), ("logits", "logits")):
            cls.make(f"{name}.pwg", "generate", *MODEL, "--lm-head", choice)
        cls.steps = cls.path("prompts.steps")
        with open(cls.steps, "w", encoding="utf-8") as file:
            file.write("0:5\n2:3 2.\n0:1 1:1\n")

    def run_steps(self, model, *args):
        """The answer of a run that generates 11 tokens of sequences 0 and 1."""
        words = ["run", self.path(f"{model}.pwg"), "-r", "llm", "-p", "o2", "--steps", self.steps, "--generate-steps", "11"]
        done = self.pwr(*words, *args, "--format", "json")
        (graph,) = json.loads(done.stdout)["graphs"]
        tokens = {row["sequence"]: row["generated_tokens"] for row in graph["generated"]}
        return tokens, graph["generated_steps"], graph["generated_launches"]

    def test_tokens_of_many_steps_in_a_launch_are_those_of_single_steps(self):
        for model in ("greedy", "sampled"):
            with self.subTest(model):
                single, steps, launches = self.run_steps(model, *CUDA)
                self.assertEqual((sorted(single), steps, launches), ([0, 1], 11, 11))
                self.assertEqual([len(row) for row in single.values()], [11, 11])
                self.assertGreater(len(set(single[0] + single[1])), 3)
                for most, launches in ((4, 3), (20, 1)):
                    self.assertEqual(self.run_steps(model, *CUDA, "--steps-in-launch", str(most)), (single, 11, launches))
                self.assertEqual(self.run_steps(model, "--backend", "interpreter", "--strict")[0], self.run_steps(model, *CUDA, "--strict")[0])

    def test_sequences_end_with_an_end_token(self):
        whole, _, _ = self.run_steps("greedy", *CUDA)
        end = whole[1][4]
        wanted = {i: row[: row.index(end) + 1] if end in row else row for i, row in whole.items()}
        steps = max(len(row) for row in wanted.values())
        for loop, launches in (((), steps), (("--steps-in-launch", "16"), 1)):
            got = self.run_steps("greedy", *CUDA, *loop, "--end-tokens", f"63000,{end}")
            self.assertEqual(got, (wanted, steps, launches))
        every = ",".join({str(row[0]) for row in whole.values()})
        got = self.run_steps("greedy", *CUDA, "--steps-in-launch", "16", "--end-tokens", every)
        self.assertEqual(got, ({i: row[:1] for i, row in whole.items()}, 1, 1))

    def test_generated_steps_continue_those_of_the_file(self):
        whole, _, _ = self.run_steps("greedy", "--backend", "eager")
        steps = self.file("single.steps", "0:5\n2:3 2.\n0:1 1:1\n" + "0:1 1:1\n" * 11)
        saved = self.path("tokens.safetensors")
        self.pwr("run", self.path("greedy.pwg"), "-r", "llm", "-p", "o2", "--steps", steps, "--save", saved)
        last = self.tokens_in(saved)
        self.assertEqual(last, [whole[0][-1], whole[1][-1]])

    def tokens_in(self, path):
        """The tokens of the last step."""
        with open(path, "rb") as file:
            data = file.read()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        begin, end = header[max((name for name in header if name.startswith("token")), key=lambda name: int(name.split("@")[1]))]["data_offsets"]
        body = data[8 + size :][begin:end]
        return [int.from_bytes(body[i : i + 8], "little") for i in range(0, len(body), 8)]

    def test_refusals(self):
        model = self.path("greedy.pwg")

        def refused(*args, code=2, of=model, steps=("--steps", self.steps)):
            return self.pwr("run", of, *steps, *args, code=code).stderr

        loop = ("--generate-steps", "3", "--steps-in-launch", "4")
        self.assertIn("PW1406", refused(*loop))
        self.assertIn("use one of cuda", refused(*loop, "--backend", "cpu"))
        self.assertIn("no whole steps are captured", refused(*loop, *CUDA[:-1], "piecewise"))
        self.assertIn("not a token for each row", refused("--generate-steps", "3", of=self.path("logits.pwg")))
        self.assertIn("generated steps are not compared", refused("--generate-steps", "3", "--check"))
        self.assertIn("all sequences of the steps have ended", refused("--generate-steps", "3", steps=("--steps", self.file("e.steps", "0:1 0.\n"))))
        for args in (
            ("--steps-in-launch", "4"),
            ("--end-tokens", "4"),
            ("--generate-steps", "0"),
            (*loop[:3], "0"),
            (*loop[:3], "5000"),
            (*loop[:2], "--end-tokens", "x"),
        ):
            refused(*args)
        self.pwr("run", model, "--generate-steps", "3", code=2)

    def test_an_input_that_no_step_writes(self):
        graph = self.file(
            "late.pwg",
            """graph late { symbol n in 1..8 tokens
  in ids: i64[n], more: i64[n]
  token = bitwise_and(ids + more, 7)
  out token
  write ids = token
}
""",
        )
        words = ["run", graph, "--steps", self.steps, "--generate-steps", "3"]
        self.pwr(*words)
        self.assertIn("input more differs from step to step", self.pwr(*words, *CUDA, "--steps-in-launch", "2", code=2).stderr)

    def test_bench_measures_generated_steps(self):
        words = ["bench", self.path("greedy.pwg"), "-r", "llm", "-p", "o2", *CUDA, "--steps", self.steps, "--repeats", "1", "--format", "json"]
        for loop, launches in (((), 6), (("--steps-in-launch", "4"), 2)):
            answer = json.loads(self.pwr(*words, "--generate-steps", "6", *loop).stdout)
            (row,) = answer["generation"]
            self.assertEqual([row[key] for key in ("generated_steps", "sequences", "launches")], [6, 2, launches])
            self.assertGreater(row["time_s"], 0)
            self.assertGreater(row["eager_s"], 0)
        self.assertNotIn("generation", json.loads(self.pwr(*words).stdout))


if __name__ == "__main__":
    unittest.main()
