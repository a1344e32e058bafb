#!/usr/bin/python3
"""One rule has one verdict: under every name, from every command, and without a contradiction of proof and samples."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
MERGE = """rule {name} {{
  many y = mm(x, w: T[k, m])
  where count(y) >= 2
  =>
  z = mm(x, cat(w...){{dim = 1}})
  y... = split(z){{dim = 1, sizes = [m...]}}
}}
"""
NAMES = ["qkv", "c", "e", "merge_gemms", "a", "b", "d", "sibling_gemms"]
SETS = {
    "xla": sorted(str(path) for path in Path("tests/proof/xla").glob("*.pwr")),
    "taso": ["bench/rules/taso.pwr"],
}

# Rules whose verdict a zero's sign, an infinity, or the end of a range decides, and the verdict.
SPECIAL = {
    # Of two zeros, an extreme takes either.
    "around_zero": ("y = maximum(minimum(x: f32[*s], 6.0), 0.0) => y = minimum(maximum(x, 0.0), 6.0)", {"differs_only_for"}),
    "relu_by_select": ("y = maximum(x: f32[*s], 0.0) => y = select(gt(x, 0.0), x, 0.0)", {"differs_only_for"}),
    # The largest f16 rounds to a bf16 that f16 does not hold.
    "cast_and_back": ("y = f16(bf16(x: f16[*s])) => y = x", {"may_overflow"}),
    # exp overflows before sinh does.
    "hyperbolic_sine": ("y = sinh(x: f32[*s]) => y = mul(sub(exp(x), exp(neg(x))), 0.5)", {"may_overflow"}),
    # 1 + x rounds to 1 for finite x: it is not infinity that it differs for.
    "rounded_comparison": ("y = lt(add(x: bf16[*s], 1.0), 1.0) => y = lt(x, 0.0)", {"unknown", "may_overflow", "refuted"}),
    # Where 1 + x rounds to 1, the select chooses the other branch.
    "rounded_branch": ("y = select(gt(add(x: f32[*s], 1.0), 1.0), a: f32[*s], b: f32[*s]) => y = select(gt(x, 0.0), a, b)", {"unknown", "refuted"}),
    "rounded_operands": (
        "y = select(gt(add(x: f32[*s], 1.0), add(z: f32[*s], 1.0)), a: f32[*s], b: f32[*s]) => y = select(gt(x, z), a, b)",
        {"unknown", "refuted"},
    ),
    "absorbed_branch": ("y = select(lt(x: f32[*s], add(x, 1.0)), a: f32[*s], b: f32[*s]) => y = a", {"unknown", "refuted"}),
    "exact_branch": ("y = f32(lt(sub(x: f32[*s], z: f32[*s]), 0.0)) => y = f32(lt(x, z))", {"same_bits", "rounds", "differs_only_for"}),
    # The terms of one sum have both signs.
    "signs_of_terms": (
        "y = mul(sum(maximum(x: i32[n, m], 0)){dim = 1}, sum(minimum(x, 0)){dim = 1}) => y = mul(sum(x){dim = 1}, 0)",
        {"refuted"},
    ),
    # Neither 1 nor 1e-13 is a rounding of the other term.
    "large_factor": ("y = add(mul(x: f32[*s], 1e14), 1.0) => y = mul(x, 1e14)", {"refuted"}),
    "small_addend": ("y = add(x: f64[*s], 1e-13) => y = x", {"refuted"}),
    # The logarithm of a negative number is undefined, and no number overflows.
    "masked_logarithm": ("y = mul(f32(gt(x: f32[*s], 0.0)), log(x)) => y = select(gt(x, 0.0), log(x), 0.0)", {"refuted"}),
    "truncated_cast": ("y = i32(trunc(x: f32[*s])) => y = i32(x)", {"same_bits"}),
    "mean": ("y = mean(x: f32[*s, n]){dim = -1} => y = div(sum(x){dim = -1}, extent(){value = n})", {"rounds"}),
    # A number takes the dtype of a sum without axes.
    "mean_of_all": ("y = div(sum(x: f32[*s, n]), 8.0) where n == 8 => y = mean(x)", {"rounds"}),
    # It rounds, far more than it changes a sign.
    "absorbed": ("y = sub(add(x: f32[*s], 1e30), 1e30) => y = x", {"rounds"}),
    "absorbed_tensor": ("y = sub(add(x: f32[*s], c: f32[*s]), c) => y = x", {"may_overflow"}),
    "absorbed_factor": ("y = mul(mul(x: f32[*s], 1e-30), 1e30) => y = x", {"may_overflow"}),
    "logarithm": ("y = log1p(x: f32[*s]) => y = log(add(x, 1.0))", {"rounds"}),
    "sum_of_products": ("y = mm(add(a: f32[n, k], b: f32[n, k]), c: f32[k, m]) => y = add(mm(a, c), mm(b, c))", {"may_overflow", "differs_only_for"}),
    # The steps in the middle round to fewer bits, though the results do not.
    # f32 rounds both literals to one number.
    "rounded_literal": ("y = mul(x: f32[*s], 3.0000001) => y = mul(x, 3.0)", {"same_bits"}),
    "changed_literal": ("y = mul(x: f32[*s], 3.000001) => y = mul(x, 3.0)", {"refuted"}),
    "narrow_steps": ("y = bf16(add(add(f32(a: bf16[*s]), f32(b: bf16[*s])), f32(c: bf16[*s]))) => y = add(add(a, b), c)", {"refuted"}),
    "narrow_operands": ("y = f16(add(a: f32[*s], b: f32[*s])) => y = add(f16(a), f16(b))", {"refuted"}),
    # A sum is f16 in the middle, and f32 where one sum has all terms.
    "narrow_rows": ("y = sum(sum(x: f16[a, b]){dim = 0}){dim = 0} => y = sum(sum(x){dim = 1}){dim = 0}", {"may_overflow"}),
    # PyTorch raises an error for an extreme of no elements.
    "any_of_none": ("y = any(x: b8[*s, n]) => y = amax(x)", {"unknown", "same_bits"}),
    "repeated_terms": ("y = sum(expand(x: f32[1, m]){shape = [n, m]}){dim = 0} where n > 0 => y = sum(x){dim = 0}", {"refuted"}),
    "shift_of_i8": ("y = shift_left(x: i8[*s], 1) => y = mul(x, 2)", {"same_bits"}),
    "shift_of_i64": ("y = shift_left(x: i64[*s], 40) => y = mul(x, 1099511627776)", {"same_bits"}),
    "shift_by_the_width": ("y = shift_left(x: i32[*s], 32) => y = sub(x, x)", {"same_bits"}),
    "halved_u8": ("y = shift_right(x: u8[*s], 1) => y = div(x, 2)", {"same_bits"}),
    "halved_i8": ("y = shift_right(x: i8[*s], 1) => y = div(x, 2)", {"refuted"}),
    "square_of_i64": ("y = pow(x: i64[*s], 2) => y = mul(x, x)", {"same_bits"}),
    "cube_of_i32": ("y = pow(x: i32[*s], 3) => y = mul(x, mul(x, x))", {"same_bits"}),
    # 0 and -0 are two numbers, with facts about sizes as without.
    "zero_of_other_sign": ("y = mul(x: f32[n], 0.0) where n > 4 => y = mul(x, -0.0)", {"differs_only_for"}),
    # A remainder that is rounded to f32 may reach a divisor of f64.
    "weak_divisor": ("y = fmod(fmod(x: f32[*s], w: f64[]), w) => y = fmod(x, w)", {"unknown", "refuted"}),
    # A mask over a number is not 0 or 1.
    "divided_mask": (
        "y = select(eq(select(m: b8[*s], div(1.0, add(w: f32[*s], 1.0)), 0.0), 0.0), x: f32[*s], 0.0)"
        " => y = mul(sub(1.0, select(m, div(1.0, add(w, 1.0)), 0.0)), x)",
        {"refuted"},
    ),
    # Products near 0 lose bits, which is rounding; near the largest number they overflow.
    "small_factor": ("y = div(mul(x: f32[*s], 0.003), 0.003) => y = x", {"rounds"}),
    "scaled_and_back": (
        "y = div(mul(x: f32[*s], constant(){value = c, dtype = f32}), constant(){value = c, dtype = f32}) => y = x",
        {"may_overflow"},
    ),
    # The left side reads row i + 1 for i = -1, which the right side refuses.
    "shifted_table": (
        "y = embedding(t: f32[v, d], add(i: i64[n], 1)) => y = embedding(slice(t){dim = 0, start = 1, end = v}, i)",
        {"refuted"},
    ),
    "other_table": ("y = embedding(t: f32[v, d], i: i64[n]) => y = embedding(mul(mul(t, 2.0), 0.5), i)", {"may_overflow"}),
    "scaled_table": ("y = mul(embedding(t: f32[v, d], i: i64[n]), 2.0) => y = embedding(mul(t, 2.0), i)", {"same_bits"}),
    # A narrow dtype rounds or wraps large indices.
    "index_as_f16": ("y = i64(iota(){shape = [4096], dtype = f16}) => y = iota(){shape = [4096]}", {"refuted"}),
    "index_as_i8": ("y = i64(iota(){shape = [4096], dtype = i8}) => y = iota(){shape = [4096]}", {"refuted"}),
    "small_index_as_f16": ("y = i64(iota(){shape = [2048], dtype = f16}) => y = iota(){shape = [2048]}", {"same_bits"}),
    "index_of_any_size": ("y = i64(iota(){shape = [n], dtype = f32}) => y = iota(){shape = [n]}", {"unknown", "refuted"}),
    "sum_of_indices": (
        "y = i64(add(iota(){shape = [4], dtype = i32}, 2147483646)) => y = add(iota(){shape = [4]}, 2147483646)",
        {"refuted"},
    ),
    "product_of_indices": (
        "y = lt(mul(mul(iota(){shape = [16]}, 100000000000000), 65536), 0) => y = lt(iota(){shape = [16]}, 0)",
        {"refuted"},
    ),
    # A double rounds both products to one number.
    "beyond_53_bits": (
        "y = add(x: i64[*s], mul(94906267, 94906267)) => y = add(x, mul(24, 375299979828137))",
        {"refuted"},
    ),
    # Sizes that no equation excludes: n m = 1, and 2 n = 3 m.
    "one_element": ("y = reshape(x: f32[n, m]){shape = [1]} => y = reshape(mul(x, 2.0)){shape = [1]}", {"refuted"}),
    "two_and_three": ("y = reshape(x: f32[n, 2]){shape = [m, 3]} => y = reshape(mul(x, 2.0)){shape = [m, 3]}", {"refuted"}),
    "same_two_and_three": ("y = reshape(x: f32[n, 2]){shape = [m, 3]} => y = reshape(reshape(x){shape = [3 * m]}){shape = [m, 3]}", {"same_bits"}),
    "factors_of_four": (
        "y = reshape(x: f32[4, a, b]){shape = [c, d]} => y = reshape(transpose(x){dim0 = 1, dim1 = 2}){shape = [c, d]}",
        {"unknown", "refuted"},
    ),
}

# For the largest i64, x + 3 wraps around and has another remainder by 3 than x.
WRONG = {"divmod.whole_period"}


class OneVerdict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)

    def pwr(self, *arguments):
        env = {**os.environ, "PWR_CACHE_DIR": str(self.path / "cache")}
        return subprocess.run([BIN / "pwr", "--no-config", *arguments], capture_output=True, text=True, env=env, timeout=1800, check=False)

    def rows(self, command, *arguments):
        done = self.pwr("--format", "json", command, *arguments)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def file(self, name, text):
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_a_name_decides_nothing(self):
        file = self.file("names.pwr", "".join(MERGE.format(name=name) for name in NAMES))
        rows = self.rows("verify", "-r", file)
        self.assertEqual([row["rule"] for row in rows], NAMES)
        first = {**rows[0], "rule": ""}
        for row in rows[1:]:
            self.assertEqual({**row, "rule": ""}, first, row["rule"])
        self.assertEqual((first["verdict"], first["known_by"]), ("same_bits", "proof"))

    def test_all_commands_print_it(self):
        text = MERGE.format(name="merge") + (
            "rule widened { y = i32(add(a: i8[*s], b: i8[*s])) => y = add(i32(a), i32(b)) }\n"
            "rule exponents { y = mul(exp(a: f32[*s]), exp(b: f32[*s])) => y = exp(add(a, b)) }\n"
            "rule sums { y = sum(sum(x: f32[n, m]){dim = 1}){dim = 0} => y = sum(reshape(x){shape = [n * m]}){dim = 0} }\n"
            "rule wrong { y = relu(x: f32[*s]) => y = abs(x) }\n"
        )
        file = self.file("doors.pwr", text)
        messages = {}
        for command, arguments in (("verify", ["-r", file]), ("prove", ["-r", file])):
            messages[command] = {row["rule"]: (row["verdict"], row["known_by"]) for row in self.rows(command, *arguments)}
        messages["check"] = {row["name"]: (row["numbers"], row["known_by"]) for row in self.rows("check", file) if row["kind"] == "rule"}
        self.assertEqual(messages["prove"], messages["verify"])
        self.assertEqual(messages["check"], messages["verify"])
        self.assertEqual(messages["verify"]["wrong"], ("refuted", "samples"))
        self.assertEqual(messages["verify"]["widened"][0], "refuted")
        self.assertEqual(messages["verify"]["sums"][0], "rounds")
        self.assertNotIn(messages["verify"]["exponents"][0], ("same_bits", "rounds"))
        lines = [self.pwr(command, "-r", file).stdout for command in ("verify", "prove")]
        for rule in messages["verify"]:
            verdicts = [next(line for line in text.splitlines() if line.startswith(rule + " ")).split(" (")[0] for text in lines]
            self.assertEqual(verdicts[0], verdicts[1])

    def test_special_values_and_ends_of_ranges(self):
        text = "".join(f"rule {name} {{ {rule} }}\n" for name, (rule, _) in SPECIAL.items())
        file = self.file("special.pwr", text)
        for command in ("verify", "prove"):
            for row in self.rows(command, "-r", file):
                with self.subTest(command, rule=row["rule"]):
                    self.assertEqual(row["contradiction"], "")
                    self.assertIn(row["verdict"], SPECIAL[row["rule"]][1], row)
                    self.assertNotIn("-nan", row["reason"])
        both_special = next(row for row in self.rows("verify", "-r", file) if row["rule"] == "relu_by_select")
        self.assertEqual(set(both_special["only_for"]), {"nan", "zero_sign"})

    def test_check_warns_of_rules_that_change_numbers(self):
        file = self.file("wrong.pwr", "rule wrong { y = relu(x: f32[*s]) => y = abs(x) }\n")
        done = self.pwr("check", file)
        self.assertIn("PW1153", done.stderr)
        self.assertIn("`wrong` changes the numbers: ", done.stderr)
        self.assertIn(f"pwr verify -r {file} wrong", done.stderr)
        self.assertIn("1 warning", done.stderr)

    def test_proofs_and_samples_do_not_contradict_each_other(self):
        for name, files in SETS.items():
            for file in files:
                with self.subTest(name, file=file):
                    for row in self.rows("verify", "-r", file):
                        self.assertEqual(row["contradiction"], "", row)
                        if row["rule"] not in WRONG:
                            self.assertNotEqual(row["verdict"], "refuted", row)


class FindsSolver(unittest.TestCase):
    """The solver is a library in the folder of the program. The verdict of this rule needs it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check(self, program, found, cwd, path=""):
        environment = os.environ | {"PWR_CACHE_DIR": f"{self.folder}/cache", "PATH": f"{path}:{os.environ['PATH']}"}
        words = [program, "--no-config", "--format", "json", "prove", "-r", Path("rules/norm.pwr").resolve(), "spelled.add_rms_wide#3"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=3600, check=True, env=environment, cwd=cwd)
        self.assertEqual("found no SMT solver" not in done.stderr, found, done.stderr)
        self.assertEqual(json.loads(done.stdout)[0]["verdict"], "same_bits" if found else "rounds")

    def test_a_program_without_it_notes_that(self):
        shutil.copy(BIN / "pwr", self.folder)
        self.check(self.folder / "pwr", False, self.folder)

    def test_however_the_program_is_started(self):
        built = (BIN / "libpw_z3.so").exists()
        (self.folder / "link").symlink_to(BIN / "pwr")
        self.check(BIN / "pwr", built, ".")
        self.check("pwr", built, self.folder, path=BIN)
        self.check(self.folder / "link", built, self.folder)

    def test_libraries_of_the_current_folder_are_not_loaded(self):
        source, marker, current = self.folder / "own.c", self.folder / "loaded", self.folder / "clone/sub"
        source.write_text(f'#include <stdio.h>\n__attribute__((constructor)) static void load(void) {{ fclose(fopen("{marker}", "w")); }}\n')
        current.mkdir(parents=True)
        (current / "pwr").touch()
        for place in ("sub", "bin", "lib/piecewise"):
            (current.parent / place).mkdir(parents=True, exist_ok=True)
            subprocess.run(["c++", "-x", "c", "-shared", "-fPIC", source, "-o", current.parent / place / "libpw_z3.so"], check=True)
        self.check("pwr", (BIN / "libpw_z3.so").exists(), current, path=BIN)
        self.assertFalse(marker.exists())


if __name__ == "__main__":
    unittest.main()
