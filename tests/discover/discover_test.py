#!/usr/bin/python3
"""Runs `pwr discover`; the other commands check, test, and prove the rules that it writes."""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()


def pwr(*arguments, code=0):
    done = subprocess.run([BIN / "pwr", *arguments], capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Discover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = os.path.join(cls.folder.name, "found.pwr")
        cls.messages = pwr("discover", "--ops", "relu,cat,split", "--nodes", "2", "--inputs", "2", "-o", cls.file).stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_what_is_written_is_checked_and_tested(self):
        pwr("check", self.file)
        pwr("fmt", "--check", self.file)
        pwr("test", self.file)

    def test_all_that_is_written_is_proved(self):
        proofs = json.loads(pwr("--format", "json", "prove", "--strict", "-r", self.file).stdout)
        self.assertTrue(proofs)
        for proof in proofs:
            self.assertEqual(proof["known_by"], "proof", proof)

    def test_parts_of_what_was_joined_are_found(self):
        text = Path(self.file).read_text(encoding="utf-8")
        rules = text.split("rule ")[1:]
        joined = [rule for rule in rules if "cat(" in rule.split("=>")[0] and "y0 = x0" in rule and "y1 = x1" in rule]
        self.assertTrue(joined, text)

    def test_the_seed_decides(self):
        again = pwr("discover", "--ops", "relu,cat,split", "--nodes", "2", "--inputs", "2", "-o", "-")
        self.assertEqual(again.stdout, Path(self.file).read_text(encoding="utf-8"))
        self.assertIn("seed 1", self.messages)

    def test_an_op_that_is_not_there(self):
        self.assertIn("reluu", pwr("discover", "--ops", "reluu", code=1).stderr)


def layer(folder, name, *options):
    path = os.path.join(folder, name)
    size = "--layers 1 --hidden 64 --heads 4 --kv-heads 2 --ffn 96 --vocab 32".split()
    pwr("generate", "llama", *size, *options, "-o", path)
    return path


def sides(text):
    """Returns the left and right side of each rule of a file, by name."""
    out = {}
    for rule in text.split("\nrule ")[1:]:
        name, body = rule.split(" {", 1)
        left, right = body.split("\n}", 1)[0].split("=>")
        out[name] = (left, right)
    return out


class From(unittest.TestCase):
    """Windows of one Llama layer that no rule has touched, in bf16 and in fp8."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.separate = layer(cls.folder.name, "separate.pwg", "--separate")
        cls.quantised = layer(cls.folder.name, "quantised.pwg", "--quant", "fp8")
        cls.file = os.path.join(cls.folder.name, "found.pwr")
        done = pwr("--format", "json", "discover", "--from", cls.separate, "--from", cls.quantised, "-o", cls.file)
        cls.answer = json.loads(done.stdout)
        cls.rules = sides(Path(cls.file).read_text(encoding="utf-8"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def found(self, left, right):
        """Returns the rules with exactly these ops on each side, most frequent first."""

        def ops(side):
            return sorted(re.findall(r"(\w+)\(", side.split("where")[0].replace("constant(", "")))

        return [name for name, both in self.rules.items() if [ops(both[0]), ops(both[1])] == [sorted(left), sorted(right)]]

    def assert_found(self, left, right, graph):
        names = self.found(left, right)
        self.assertTrue(names, f"{left} => {right} is not among {sorted(self.rules)}")
        rows = [row for row in self.answer["rules"] if row["rule"] in names]
        self.assertTrue(all(row["bytes_after"] < row["bytes_before"] for row in rows), rows)
        after = pwr("opt", graph, "-r", self.file, "-p", names[0], "-o", "-").stdout
        self.assertNotEqual(after, Path(graph).read_text(encoding="utf-8"), names)
        for op in right:
            self.assertIn(f"{op}(", after)

    def test_a_sum_and_its_norm(self):
        self.assert_found(["add", "rms_norm"], ["fused_add_rms_norm"], self.separate)

    def test_a_norm_and_its_quantisation(self):
        self.assert_found(["rms_norm", "static_scaled_fp8_quant"], ["rms_norm_static_fp8_quant"], self.quantised)

    def test_a_gated_unit(self):
        self.assert_found(["split", "silu", "mul"], ["silu_and_mul"], self.quantised)

    def test_sibling_products(self):
        self.assert_found(["mm", "mm"], ["cat", "mm", "split"], self.separate)
        self.assert_found(["mm", "mm", "mm"], ["cat", "mm", "split"], self.separate)

    def test_all_is_checked_tested_and_proved(self):
        pwr("check", self.file)
        pwr("fmt", "--check", self.file)
        pwr("test", self.file)
        proofs = json.loads(pwr("--format", "json", "prove", "--strict", "-r", self.file).stdout)
        self.assertEqual(len(proofs), len(self.rules))
        self.assertEqual({proof["known_by"] for proof in proofs}, {"proof"})

    def test_what_only_looks_like_it_is_not_found(self):
        path = os.path.join(self.folder.name, "other.pwg")
        Path(path).write_text(
            "graph other {\n  in x: bf16[8, 64], r: bf16[8, 64]\n  in weight w: bf16[64]\n"
            "  up, gate = split(x){dim = 1, sizes = [32, 32]}\n  y = silu(gate) * up\n"
            "  z = rms_norm(sub(x, r), w)\n  out y, z\n}\n",
            encoding="utf-8",
        )
        found = sides(pwr("discover", "--from", path, "-o", "-").stdout)
        self.assertFalse([both for both in found.values() if "silu_and_mul" in both[1] and "cat" not in both[1]], found)
        self.assertFalse([both for both in found.values() if "fused_add_rms_norm" in both[1]], found)


class Derives(unittest.TestCase):
    def test_laws_of_taso_follow_from_what_the_default_ops_give(self):
        done = pwr("--format", "json", "discover", "--derives", "bench/rules/taso.pwr")
        rows = json.loads(done.stdout)["derives"]
        self.assertEqual([row["rule"] for row in rows if not row["derived"]], [])
        self.assertGreater(len(rows), 15)

    def test_a_law_of_sums_of_sizes(self):
        found = sides(pwr("discover", "--ops", "add,split", "--nodes", "3", "--inputs", "2", "-o", "-").stdout)
        self.assertIn("add_split_to_split_split_add", found)

    def test_rules_that_follow_and_one_that_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "known.pwr")
            Path(path).write_text(
                "rule parts { t = cat(a: f32[n, p], b: f32[n, q]){dim = 1}  y, z = split(t){dim = 1, sizes = [p, q]}\n"
                "  => y = a  z = b }\n"
                "rule other { y = exp(add(a: f32[n, p], b: f32[n, p])) => y = mul(exp(a), exp(b)) }\n",
                encoding="utf-8",
            )
            done = pwr("--format", "json", "discover", "--ops", "cat,split", "--inputs", "2", "--nodes", "2", "--derives", path)
            answer = json.loads(done.stdout)
            derived = {row["rule"]: row["derived"] for row in answer["derives"]}
            self.assertEqual(derived, {"parts": True, "other": False})
            self.assertEqual(answer["derives_with"], 1)
            self.assertGreater(len(answer["rules"]), 1)
            self.assertIn("derives 1 of 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
