#!/usr/bin/python3
"""The verdicts of `pwr check` as data, and its report if not everything was checked."""
import json
import unittest

from program import ProgramTest

TEXT = """
op f1(a: T[*s]) -> y: T[*s] { y = relu(a) }
op f2(a: T[*s]) -> y: T[*s] { y = neg(a) }
rule first { y = exp(relu(x)) => y = f1(x) }
rule second { y = neg(exp(x)) => y = f2(x) }
pass overlapping = greedy { first, second }
rule general { y = silu(x) => y = f1(x) }
rule special { y = silu(x: bf16[n, d]) => y = f2(x) }
pass shadowed = greedy { general, special }
rule twice { y = x + x => y = x * 2.0 }
rule sum { y = x * 2.0 => y = x + x }
pass endless = greedy { twice, sum }
rule fine { y = tanh(tanh(x)) => y = tanh(x) }
pass ends = greedy { fine }
rule alone { y = sigmoid(sigmoid(x)) => y = sigmoid(x) }
pattern q(x) -> y { y = cos(x) | y = sin(x) }
rule lists { many y = mm(x, w: T[k, m])  => z = mm(x, cat(w...){dim = 1})  y... = split(z){dim = 1, sizes = [m...]} }
pass with_lists = greedy { lists } fuel 9
"""
VERDICTS = {
    "first": "overlaps",
    "second": "overlaps",
    "general": "overlaps",
    "special": "never_fires",
    "twice": "may_not_end",
    "sum": "may_not_end",
    "fine": "nothing_found",
    "lists": "not_analysed",
}


class Check(ProgramTest):
    def rows(self, *args, code=0):
        return json.loads(self.pwr("check", *args, "--format", "json", code=code).stdout)

    def test_each_rule_has_its_verdict(self):
        rows = self.rows(self.file("all.pwr", TEXT))
        rules = {row["name"]: row for row in rows if row["kind"] == "rule"}
        self.assertEqual({name: rules[name]["verdict"] for name in VERDICTS}, VERDICTS)
        self.assertEqual(rules["first"]["findings"], [{"verdict": "overlaps", "code": "PW1150", "rules": ["first", "second"]}])
        self.assertEqual(rules["special"]["findings"][0]["code"], "PW1151")
        self.assertEqual(rules["twice"]["findings"][0]["code"], "PW1152")
        self.assertIn("lists or `unless`", rules["lists"]["reasons"][0])
        self.assertRegex(rules["first"]["place"], r"all\.pwr:4:6$")
        summary = rows[-1]
        self.assertEqual(summary["kind"], "summary")
        self.assertEqual(summary["verdicts"]["may_not_end"], 2)
        self.assertEqual(sum(summary["verdicts"].values()), len(rules))
        self.assertEqual(summary["pairs_left_out"], 0)

    def test_findings_have_their_place_and_a_test_that_runs(self):
        path = self.file("found.pwr", TEXT)
        found = [row for row in self.rows(path) if row["kind"] in ("overlap", "shadow", "loop")]
        self.assertEqual({row["code"] for row in found}, {"PW1150", "PW1151", "PW1152"})
        for row in found:
            self.assertIn(row["verdict"], ("overlaps", "never_fires", "may_not_end"))
            self.assertRegex(row["place"], r"found\.pwr:\d+:\d+$")
            self.assertTrue(row["message"] and row["help"])
        with_tests = self.file("with_tests.pwr", TEXT + "".join(row["test"] for row in found))
        self.assertIn(f"{sum(bool(row['test']) for row in found)} tests, 0 failed", self.pwr("test", with_tests).stdout)

    def test_rules_of_the_library_are_left_out(self):
        wrong = self.file("own.pwr", 'use "activation"\nrule own { y = relu(neg(x)) => y = neg(relu(x)) }\npass p = greedy { own }\n')
        printed = self.pwr("check", wrong)
        self.assertRegex(printed.stdout, r"rule +own +2 nodes → 1 +refuted")
        self.assertNotIn("gelu", printed.stdout + printed.stderr)
        self.assertRegex(printed.stderr, r"left out: \d+ rows and \d+ warnings of the built-in library, which --all judges and prints")
        for args in ((wrong, "--all"), ("activation",)):
            printed = self.pwr("check", *args)
            self.assertRegex(printed.stdout, r"rule +gelu_spelled#0 .* (proof|samples)")
            self.assertNotIn("left out", printed.stderr)

    def test_without_the_analysis_nothing_is_claimed(self):
        rules = [row for row in self.rows(self.file("none.pwr", TEXT), "--no-analysis") if row["kind"] == "rule"]
        self.assertEqual({row["verdict"] for row in rules}, {"not_analysed"})
        self.assertEqual(rules[0]["reasons"], ["--no-analysis"])

    def test_a_rule_of_no_pass_is_not_analysed(self):
        text = (
            "rule alone { y = sigmoid(sigmoid(x)) => y = sigmoid(x) }\nrule other { y = relu(relu(x)) => y = relu(x) }\npass p = greedy { other }\n"
        )
        rules = {row["name"]: row for row in self.rows(self.file("alone.pwr", text)) if row["kind"] == "rule"}
        self.assertEqual((rules["alone"]["verdict"], rules["other"]["verdict"]), ("not_analysed", "nothing_found"))

    def test_mistakes_are_rows_too(self):
        rows = self.rows(self.file("wrong.pwr", "rule a { y = nonsense(x) => y = x }\nrule b { y = relu(x) => y = z }\n"), code=3)
        self.assertEqual([row["kind"] for row in rows], ["error"] * (len(rows) - 1) + ["summary"])
        self.assertEqual(rows[-1]["errors"], len(rows) - 1)
        self.assertTrue(all(row["code"].startswith("PW") and "wrong.pwr:" in row["place"] for row in rows[:-1]))

    def test_what_was_left_out_of_very_many_rules_is_counted(self):
        ops = ["relu", "silu", "neg", "exp", "abs", "sigmoid", "tanh", "sin", "cos"]
        rules = [f"rule r{i} {{ y = {ops[i % 9]}({ops[i // 9 % 9]}({ops[i // 81 % 9]}(x: T[*s]))) => y = sqrt(x) }}" for i in range(729)]
        text = "\n".join(rules) + "\npass p = greedy { " + ", ".join(f"r{i}" for i in range(729)) + " }\n"
        rows = self.rows(self.file("many.pwr", text))
        self.assertFalse([row["name"] for row in rows if "numbers" in row and row["kind"] == "rule"], "so many are not proved unasked")
        summary = rows[-1]
        sets = [{i % 9, i // 9 % 9, i // 81 % 9} for i in range(729)]
        meet = sum(bool(a & b) for i, a in enumerate(sets) for b in sets[i:])
        self.assertLessEqual(summary["pairs"] + summary["pairs_left_out"], meet)
        self.assertGreater(summary["pairs_left_out"], meet - 10000)

    def test_a_pattern_too_large_for_all_ways_is_said(self):
        lines = [f"a{i} = relu({f'a{i - 1}' if i else 'x: T[*s]'})" for i in range(200)]
        text = "rule deep { " + "\n".join(lines) + "\ny = neg(a199) => y = abs(x) }\npass p = greedy { deep }\n"
        rule = next(row for row in self.rows(self.file("deep.pwr", text)) if row["kind"] == "rule")
        self.assertEqual(rule["verdict"], "not_analysed")
        self.assertIn("not all ways to share a node", rule["reasons"][0])


if __name__ == "__main__":
    unittest.main()
