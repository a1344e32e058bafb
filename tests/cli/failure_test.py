#!/usr/bin/python3
"""Planted faults: bisect names the rewrite, run --check-each the pass, and reduce makes a test that fails with the fault and passes without it."""
import json
import os
import re
import shlex
import stat
import unittest
from pathlib import Path

from program import ProgramTest

# Right rules, of a pass before the planted one and of the same.
COMMON = """
op own_gate(x: T[*s], g: T[*s]) -> y: T[*s] { y = x * sigmoid(g) }
op crashing(x: T[*s]) -> y: T[*s] { y = maximum(x, 0) }
op twice(x: T[*s]) -> y: T[*s] { y = relu(relu(x)) }
op relu_neg(x: T[*s]) -> (p: T[*s], q: T[*s]) { p = relu(x) q = neg(x) }
op neg_exp(x: T[*s]) -> (q: T[*s], r: T[*s]) { q = neg(x) r = exp(x) }
rule positive { y = abs(abs(x)) => y = abs(x) }
rule exponent { y = log(exp(x)) => y = x }
"""
PASSES = """
pass early = greedy { positive }
pipeline all { early greedy { exponent, planted RIVAL } dce }
"""
SEGFAULT = "#!/bin/sh\nif grep -q 'crashing(' \"$1\"; then kill -SEGV $$; fi\n"
TOO_MANY = '#!/bin/sh\ntest "$1" != --graph && exit 127\nif grep -q \'tanh(\' "$2"; then exit 3; fi\n'

# name: options of reduce, the planted rule, the rule as it should be, and a rival in its pass.
FAULTS = {
    "swapped_operands": (
        [],
        "rule planted { y = mul(sigmoid(g), x) => y = own_gate(g, x) }",
        "rule planted { y = mul(sigmoid(g), x) => y = own_gate(x, g) }",
        "",
    ),
    "lost_sign": ([], "rule planted { y = neg(neg(x)) => y = neg(x) }", "rule planted { y = neg(neg(x)) => y = x }", ""),
    "lost_relu": ([], "rule planted { y = relu(relu(x)) => y = x }", "rule planted { y = relu(relu(x)) => y = relu(x) }", ""),
    "lost_eps": (
        [],
        "rule planted { r = add(x, res) y = rms_norm(r, w){eps} => y, r = fused_add_rms_norm(x, res, w) _ = eps }",
        "rule planted { r = add(x, res) y = rms_norm(r, w){eps} => y, r = fused_add_rms_norm(x, res, w){eps} }",
        "",
    ),
    "crash": (
        ["--command", "SEGFAULT {after}"],
        "rule planted { y = relu(x) => y = crashing(x) }",
        "rule planted { y = relu(x) => y = maximum(x, 0) }",
        "",
    ),
    "exit_code": (
        ["--command", "TOO_MANY --graph"],
        "rule planted { y = sigmoid(x) => y = tanh(x) }",
        "rule planted { y = sigmoid(x) => y = exp(x) }",
        "",
    ),
    "cycle": (
        ["--code", "PW1103"],
        "rule planted { y = mul(a, b) => y = mul(b, a) }",
        "rule planted { y = mul(neg(a), neg(b)) => y = mul(a, b) }",
        "",
    ),
    "growth": (
        ["--code", "PW1104"],
        "rule planted { y = relu(x) => y = relu(neg(neg(x))) }",
        "rule planted { y = relu(neg(neg(x))) => y = relu(x) }",
        "",
    ),
    "rivals": (
        ["--order"],
        "rule planted { q = neg(x) r = exp(x) => q, r = neg_exp(x) }",
        "rule planted over rival { q = neg(x) r = exp(x) => q, r = neg_exp(x) }",
        "rule rival { p = relu(x) q = neg(x) => p, q = relu_neg(x) }",
    ),
    "self_overlap": (["--order"], "rule planted { y = relu(relu(x)) => y = twice(x) }", "rule planted { y = relu(relu(x)) => y = relu(x) }", ""),
}


def block(i):
    """Nodes on f32[n, 64] that end in x{i + 1}."""
    return f"""
  a{i} = abs(abs(x{i}))
  r{i} = relu(relu(relu(relu(x{i}))))
  g{i} = mul(sigmoid(a{i}), r{i})
  t{i} = neg(neg(g{i}))
  l{i} = log(exp(t{i}))
  s{i} = add(l{i}, x{i})
  h{i} = rms_norm(s{i}, w{i}){{eps = 0.5}}
  p{i} = relu(h{i})
  q{i} = neg(h{i})
  e{i} = exp(h{i})
  x{i + 1} = sub(add(p{i}, q{i}), e{i})
"""


def model(blocks):
    weights = ", ".join(f"w{i}: f32[64]" for i in range(blocks))
    return f"graph model {{\n  symbol n in 1..64 tokens\n  in x0: f32[n, 64]\n  in weight {weights}\n{''.join(block(i) for i in range(blocks))}\n  out x{blocks}, s0\n}}\n"


class Failures(ProgramTest):
    def script(self, name, text):
        path = self.file(name, text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def rules(self, fault, planted):
        _, wrong, right, rival = FAULTS[fault]
        return COMMON + rival + "\n" + (wrong if planted else right) + PASSES.replace("RIVAL", ", rival" if rival else "")

    def options(self, fault):
        scripts = {"SEGFAULT": self.script("segfault.sh", SEGFAULT), "TOO_MANY": self.script("too_many.sh", TOO_MANY)}
        words = list(FAULTS[fault][0])
        for name, path in scripts.items():
            words = [word.replace(name, path) for word in words]
        return words

    def reduced(self, fault):
        graph = self.file("model.pwg", model(4))
        rules = self.file(f"{fault}.pwr", self.rules(fault, True))
        out = self.path(f"{fault}_failure.pwr")
        done = self.pwr("reduce", graph, "-r", rules, "-p", "all", *self.options(fault), "-o", out, "--format", "json")
        found = json.loads(done.stdout)
        row = found["reduction"][0]
        self.assertEqual(found["test"].replace(self.folder.name + "/", "", 1), Path(out).read_text())  # the file uses rules of its folder
        self.assertLessEqual(row["nodes"], 6, found["test"])
        self.assertEqual(row["nodes_before"], 4 * 19)
        self.assertEqual(row["rules"], ["planted", "rival"] if FAULTS[fault][3] else ["planted"])
        self.assertIn("FAIL", self.pwr("test", out, code=1).stdout)
        Path(rules).write_text(self.rules(fault, False))
        self.pwr("test", out)
        self.pwr("reduce", graph, "-r", rules, "-p", "all", *self.options(fault), code=1)


def planted(fault):
    return lambda self: self.reduced(fault)


for each in FAULTS:
    setattr(Failures, f"test_{each}_is_reduced", planted(each))


class Bisection(ProgramTest):
    """A rule that is right at 1 999 places and wrong at one."""

    RULES = "rule skip { y = abs(x) => y = x }\npass p = walk { skip }\n"

    def graph(self, wrong, count=2000):
        lines = ["u = exp(x)", "y0 = neg(x)"]
        for i in range(1, count + 1):
            lines += [f"a{i} = abs({'x' if i == wrong else 'u'})", f"y{i} = add(y{i - 1}, a{i})"]
        text = "\n  ".join(lines)
        return self.file("chain.pwg", f"graph chain {{\n  symbol n in 1..8 tokens\n  in x: f32[n, 64]\n  {text}\n  out y{count}\n}}\n")

    def test_one_of_two_thousand_rewrites_is_found_in_fifteen_runs(self):
        rules = self.file("skip.pwr", self.RULES)
        for wrong in (1, 1337, 2000):
            found = json.loads(self.pwr("bisect", self.graph(wrong), "-r", rules, "-p", "p", "--format", "json").stdout)
            self.assertEqual(found["changes"], 2000)
            self.assertLessEqual(found["runs"], 15)
            (culprit,) = found["culprit"]
            self.assertEqual((culprit["change"], culprit["pass"], culprit["rule"]), (wrong, "p", "skip"))
            self.assertEqual(culprit["before"], [f"a{wrong} = abs(x)"])

    def test_a_command_finds_it_and_may_not_know(self):
        script = self.file(
            "count.sh", '#!/bin/sh\ncount=$(grep -c "abs(" "$1")\ntest "$count" -gt 30 -a "$count" -lt 34 && exit 125\ntest "$count" -gt 25\n'
        )
        os.chmod(script, stat.S_IRWXU)
        rules = self.file("skip.pwr", self.RULES)
        graph = self.graph(0, 64)
        found = json.loads(self.pwr("bisect", graph, "-r", rules, "-p", "p", "--command", script, "--format", "json").stdout)
        self.assertEqual(found["culprit"][0]["change"], 64 - 25)
        self.pwr("bisect", graph, "-r", rules, "-p", "p", code=1)  # the numbers are right

    def test_commands_that_cannot_be_run_are_said(self):
        rules = self.file("skip.pwr", self.RULES)
        graph = self.graph(3, 4)
        for words in ("/no/such/program", "'open", "  "):
            self.assertIn("PW1416", self.pwr("bisect", graph, "-r", rules, "-p", "p", "--command", words, "--diagnostics", "json", code=2).stderr)
        hangs = self.file("hangs.sh", "#!/bin/sh\nsleep 100\n")
        os.chmod(hangs, stat.S_IRWXU)
        done = self.pwr("bisect", graph, "-r", rules, "-p", "p", "--command", hangs, "--timeout", "0.1", "--diagnostics", "json", code=2)
        self.assertIn("PW1417", done.stderr)

    def test_words_are_no_shell_text(self):
        rules = self.file("skip.pwr", self.RULES)
        trap = self.path("trap")
        self.pwr("bisect", self.graph(3, 4), "-r", rules, "-p", "p", "--command", f"/bin/true ; touch {trap} $(touch {trap}) `touch {trap}`", code=1)
        self.assertFalse(os.path.exists(trap))


class Runs(ProgramTest):
    def setUp(self):
        self.graph = self.file("model.pwg", model(2))
        self.wrong = self.file(
            "wrong.pwr",
            COMMON + FAULTS["lost_relu"][1] + PASSES.replace("RIVAL", "") + "pass late = greedy { planted }\npipeline three { early late dce }\n",
        )
        self.right = self.file("right.pwr", COMMON + FAULTS["lost_relu"][2] + PASSES.replace("RIVAL", ""))

    def test_check_each_names_the_first_pass_that_fails(self):
        done = self.pwr("run", self.graph, "-r", self.wrong, "-p", "three", "--tokens", "1,3", "--check-each", "--format", "json", code=4)
        checks = json.loads(done.stdout)["graphs"][0]["checks"]
        self.assertEqual(
            [(row["pass"], row["tokens"], row["passed"]) for row in checks], [(p, t, p == "early") for t in (1, 3) for p in ("early", "late", "dce")]
        )
        self.assertIn("late is the first pass after which the numbers fail", done.stderr)
        self.pwr("run", self.graph, "-r", self.right, "-p", "all", "--tokens", "1", "--check-each")

    def test_the_command_of_a_failed_run_finds_the_rewrite(self):
        dump = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]
        rules = self.file(
            "glu.pwr", "rule glu { y = mul(silu(g), u) => y = mul(sigmoid(g), u) }\npass gates = greedy { glu }\npipeline p { gates }\n"
        )
        done = self.pwr("run", *dump, "-r", rules, "-p", "p", "--tokens", "3", "--seed", "7", "--check", "--report", self.path("out"), code=4)
        (command,) = re.findall(r"^  pwr (.*)$", done.stderr, re.M)
        self.assertIn("--symbol n=arg0_1.0,arg1_1.0", command)
        self.assertIn("rule `glu` in pass `gates`", self.pwr(*shlex.split(command)).stdout)
        page = Path(self.path("out"), "report.html").read_text(encoding="utf-8")
        self.assertIn("rule `glu` in pass `gates`, glu.pwr:1:1", page)
        self.assertIn("-r glu.pwr -p p --tokens 3 --seed 7", page)
        self.assertNotIn(self.folder.name, page)

    def test_on_failure_writes_a_test(self):
        out = self.path("found.pwr")
        done = self.pwr(
            "run", self.graph, "-r", self.wrong, "-p", "all", "--tokens", "3", "--check", "--on-failure", "reduce", "--reproducer", out, code=4
        )
        self.assertIn("planted", done.stderr)
        self.pwr("test", out, code=1)
        self.assertFalse(os.path.exists(self.path("none.pwr")))
        self.pwr(
            "run",
            self.graph,
            "-r",
            self.right,
            "-p",
            "all",
            "--tokens",
            "3",
            "--check",
            "--on-failure",
            "reduce",
            "--reproducer",
            self.path("none.pwr"),
        )
        self.assertFalse(os.path.exists(self.path("none.pwr")))


if __name__ == "__main__":
    unittest.main()
