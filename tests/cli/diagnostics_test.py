#!/usr/bin/python3
"""Diagnostics as JSON, SARIF and annotations, from every command; and the output of `pwr explain CODE`."""
import json
import os
import re
import subprocess
import unittest
from pathlib import Path
from urllib.parse import unquote

import jsonschema

from program import BIN, ProgramTest

ANSWERS = json.loads(Path("docs/answers.schema.json").read_text(encoding="utf-8"))
SARIF = json.loads(Path("tests/cli/sarif_required.json").read_text(encoding="utf-8"))
# `twice` is declared twice.
BAD = "// α\nrule oops { y = rms_nrom(x, w){eps} => y = x }\nrule twice { y = relu(relu(x)) => y = relu(x) }\nrule twice { y = relu(x) => y = neg(x) }\n"
IDLE = "rule never { y = relu(relu(x)) => y = relu(x) }\nrule used { y = neg(neg(x)) => y = x }\npass p = greedy { used }\npipeline q { p }\n"

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")  # samples may differ on another machine

# Spellings of PyTorch users, each with the one that the help shows.
HABITS = {
    "y = softmax(x, -1)  => y = relu(x)": "`y = e / sum(e){dim = -1, keepdim = true}`",
    "y = torch.nn.functional.softmax(x)  => y = relu(x)": "`pwr ops softmax`",
    "y = matmul(x, w)  => y = relu(x)": "`mm(x, w)` for matrices",
    "y = view(x)  => y = relu(x)": "`reshape(x){shape = [n, d]}`",
    "y = neg(x)  => y = x.view(3)": "`reshape(x){shape = [n, d]}`",
    "y = neg(x)  => y = x.relu()": "write `relu(x)`",
    "y = F.linear(x, w)  => y = relu(x)": "`mm(x, transpose(w){dim0 = 0, dim1 = 1})`",
    "y = neg(x)  => y = x ** 2": "a square `mul(x, x)`",
    "y = sum(x, -1)  => y = relu(x)": "`sum(…){dim = …}`",
    "y = neg(x) where x.dtype == torch.float16  => y = relu(x)": "did you mean `f16`?",
    "y = neg(x) where x.ndim == 2  => y = relu(x)": "`rank(x)`",
    "y = neg(x) where x.is_cuda  => y = relu(x)": "`x.shape` and `x.dtype`",
    "y = neg(x) where x.shape[0] == 3  => y = relu(x)": "`size(x, 0)`",
    "y = neg(x) where x.size(0) == 3  => y = relu(x)": "`size(x, 0)`",
    "y = neg(x) where len(x) == 3  => y = relu(x)": "`count(xs)`",
    "y = neg(x: T[n]) where n > 1 || n < 3  => y = relu(x)": "`or` and `and`",
    "y = where(x, w, w)  => y = relu(x)": "`select(mask, x, y)`",
}


class Habits(ProgramTest):
    def test_a_habit_of_pytorch_gets_the_right_spelling(self):
        for rule, help in HABITS.items():
            with self.subTest(rule=rule):
                printed = self.pwr("check", self.file("habit.pwr", "rule r { " + rule + " }\n"), code=3).stderr
                self.assertIn(help, printed)

    def test_attributes_without_a_default_are_one_error(self):
        printed = self.pwr("check", self.file("habit.pwr", "rule r { y = transpose(x)  => y = relu(x) }\n"), code=3).stderr
        self.assertEqual(printed.count("error[PW0235]"), 1)
        self.assertIn("attributes `dim0` and `dim1` of `transpose` have no default", printed)
        self.assertIn("write `{dim0, dim1}` to capture them, or `{..}` to match any", printed)

    def test_a_guard_of_a_dtype_holds_for_some_dtype(self):
        rule = "rule r { y = relu(relu(x: T[n])) where x.dtype == f16  => y = relu(x) }\n"
        self.assertNotIn("PW0280", self.pwr("check", self.file("habit.pwr", rule)).stderr)

    def test_ops_answers_names_of_pytorch(self):
        for name, answer in {
            "torch.relu": "op relu(",
            "softmax": "`aten.softmax.int` is not an op here. Dumps that call it are read as",
            "aten.softmax.int": "e = exp(h - amax(h){dim, keepdim = true})",
            "aten.layer_norm": "`aten.layer_norm` is not an op here",
            "view": "op reshape(",
        }.items():
            with self.subTest(name=name):
                self.assertIn(answer, self.pwr("ops", name).stdout)
        self.assertNotIn("op div(", self.pwr("ops", "softmax").stdout)

    def test_a_weight_needs_an_in_of_its_own(self):
        for start, help in {
            "in x: f32[4], weight w: f32[4]": "`in weight w: …`",
            "in x: f32[4]  buffer w: f32[4]": "`in buffer w: …`",
            "in x: f32[4]  in parameter w: f32[4]": "an input is a weight, a buffer, or neither",
        }.items():
            with self.subTest(start=start):
                path = self.file("kinds.pwg", "graph g { " + start + "  y = mul(x, w)  out y }\n")
                self.assertIn(help, self.pwr("stats", path, code=3).stderr)

    def test_a_file_that_is_not_rules_is_named(self):
        printed = self.pwr("check", self.file("README.md", "# Title\n\n## Part\n\nimport torch\n"), code=3).stderr
        self.assertIn("this is a Markdown document", printed)
        printed = self.pwr("check", self.file("model.py", "import torch\n"), code=3).stderr
        self.assertIn("this is Python source", printed)

    def test_explain_of_a_pipeline_lists_its_passes(self):
        rules = self.file("two.pwr", IDLE)
        graph = self.file("g.pwg", "graph { in x: f32[2] y = neg(x) out y }")
        printed = self.pwr("explain", "q", graph, "-r", rules, code=2).stderr
        self.assertIn("`q` is a pass or a pipeline, not a rule", printed)
        self.assertIn("its passes are p", printed)
        self.assertIn("its rules are used", self.pwr("explain", "p", graph, "-r", rules, code=2).stderr)

    def reported(self, name, text):
        """The codes and messages that an example's text, or command, is reported with."""
        if name is None:
            path = f"{BIN}:{os.environ['PATH']}"
            done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
            return re.findall(r"^(?:error|warning)\[(PW\d+)\]: (.*)$", done.stderr, flags=re.M)
        command = "check" if name.endswith(".pwr") else "stats"
        args = [BIN / "pwr", command, self.file(name, text + "\n"), "--diagnostics", "json"]
        done = subprocess.run(args, capture_output=True, text=True, check=False)
        return [(d["code"], d["message"]) for d in json.loads(done.stderr)["diagnostics"]]

    def test_every_example_shows_its_code_and_is_fixed(self):
        codes = [row["code"] for row in json.loads(self.pwr("explain", "--codes", "--format", "json").stdout)]
        shown = 0
        for code in codes:
            example = json.loads(self.pwr("explain", code, "--format", "json").stdout)
            if example["example"] is None:
                continue
            shown += 1
            with self.subTest(code=code):
                reported = self.reported(example["file"], example["example"])
                self.assertIn((code, NUMBER.sub("#", example["message"])), [(c, NUMBER.sub("#", m)) for c, m in reported])
                self.assertEqual(self.reported(example["file"], example["fixed"]), [])
        self.assertGreater(shown, 200)

    def test_check_warns_of_a_failing_test(self):
        text = IDLE + "test t { graph { in x: f32[2] y = neg(neg(x)) out y } apply p expect used == 2 }\n"
        printed = self.pwr("check", self.file("tested.pwr", text)).stderr
        self.assertIn("warning[PW1156]: test `t` fails: expected used == 2", printed)
        self.assertIn("tested.pwr` prints the difference", printed)


class Forms(ProgramTest):
    def setUp(self):
        self.bad = self.file("bäd rules.pwr", BAD)
        self.unreached = self.file("unreached.pwr", IDLE)

    def diagnostics(self, form, *args, code=3):
        done = self.pwr(*args, "--diagnostics", form, code=code)
        return done.stderr

    def test_json_is_one_document_on_standard_error(self):
        document = json.loads(self.diagnostics("json", "check", self.bad))
        jsonschema.Draft202012Validator({**ANSWERS, "$ref": "#/$defs/diagnostics"}).validate(document)
        self.assertEqual((document["program"], document["exit_code"]), ("pwr", 3))
        first = document["diagnostics"][0]
        self.assertEqual((first["severity"], first["code"], first["file"], first["line"]), ("error", "PW0220", self.bad, 2))
        line = Path(self.bad).read_bytes().splitlines()[1]
        self.assertEqual(line[first["column"] - 1 : first["end_column"] - 1], b"rms_nrom(x, w){eps}")
        self.assertIn("rms_norm", first["help"])
        twice = next(d for d in document["diagnostics"] if d["code"] == "PW0401")
        self.assertEqual([(r["file"], r["line"]) for r in twice["related"]], [(self.bad, 3)])

    def test_every_kind_of_place(self):
        graph = self.file("wrong.json", '{"format": "piecewise.graph/1", "inputs": [], "nodes": 3, "outputs": []}')
        for args, file, inside in (
            (["stats", graph], graph, "/nodes"),
            (["stats", self.path("absent.json")], None, self.path("absent.json")),
            (["run", graph, "--tokens", "x"], None, "`x`"),
        ):
            with self.subTest(args=args):
                document = json.loads(self.diagnostics("json", *args, code=2 if "--tokens" in args else 3))
                jsonschema.Draft202012Validator({**ANSWERS, "$ref": "#/$defs/diagnostics"}).validate(document)
                (one,) = document["diagnostics"]
                self.assertEqual((one["file"], one["inside"], one["line"]), (file, inside, None))

    def test_mistakes_of_the_command_line(self):
        document = json.loads(self.diagnostics("json", "check", "--fromat", "x", self.bad, code=2))
        (one,) = document["diagnostics"]
        self.assertEqual((one["code"], one["help"], document["exit_code"]), (None, "did you mean `--format`?", 2))

    def test_nothing_wrong_is_an_empty_document(self):
        good = self.file("good.pwr", IDLE.replace("{ used }", "{ used, never }"))
        document = json.loads(self.diagnostics("json", "check", good, code=0))
        self.assertEqual((document["exit_code"], document["diagnostics"]), (0, []))

    def check_sarif(self, log):
        jsonschema.Draft202012Validator(SARIF).validate(log)
        (run,) = log["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        self.assertEqual(rules, sorted(set(rules)))
        for result in run["results"]:
            if "ruleId" in result:
                self.assertEqual(rules[result["ruleIndex"]], result["ruleId"])
        return run

    def test_sarif(self):
        out = self.path("found.sarif")
        done = self.pwr("check", self.bad, "--diagnostics", "sarif", "--diagnostics-to", out, code=3)
        self.assertIn("error[PW0220]", done.stderr)  # people still read text
        run = self.check_sarif(json.loads(Path(out).read_text(encoding="utf-8")))
        self.assertEqual(run["invocations"], [{"executionSuccessful": False, "exitCode": 3}])
        result = next(r for r in run["results"] if r["ruleId"] == "PW0220")
        (location,) = result["locations"]
        place = location["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        self.assertTrue(uri.startswith("file:///") and " " not in uri, uri)
        self.assertEqual(unquote(uri[len("file://") :]), self.bad)
        region = place["region"]
        line = Path(self.bad).read_text(encoding="utf-8").splitlines()[region["startLine"] - 1]
        self.assertEqual(line[region["startColumn"] - 1 : region["endColumn"] - 1], "rms_nrom(x, w){eps}")
        twice = next(r for r in run["results"] if r["ruleId"] == "PW0401")
        self.assertEqual(twice["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 3)

    def test_columns_of_sarif_count_characters(self):
        path = self.file("wide.pwr", "rule oops { `αβγ` = rms_nrom(x, w){eps} => `αβγ` = x }\n")
        run = self.check_sarif(json.loads(self.diagnostics("sarif", "check", path)))
        region = next(r for r in run["results"] if r["ruleId"] == "PW0220")["locations"][0]["physicalLocation"]["region"]
        line = Path(path).read_text(encoding="utf-8").splitlines()[0]
        self.assertEqual(line[region["startColumn"] - 1 : region["endColumn"] - 1], "rms_nrom(x, w){eps}")
        document = json.loads(self.diagnostics("json", "check", path))
        self.assertEqual(document["diagnostics"][0]["column"], region["startColumn"] + 3)  # bytes

    def test_sarif_of_every_severity_and_of_places_without_lines(self):
        run = self.check_sarif(json.loads(self.diagnostics("sarif", "check", self.unreached, code=0)))
        self.assertEqual({r["level"] for r in run["results"]}, {"warning"})
        run = self.check_sarif(json.loads(self.diagnostics("sarif", "stats", self.path("absent.json"))))
        self.assertEqual(run["results"][0]["locations"], [{"logicalLocations": [{"fullyQualifiedName": self.path("absent.json")}]}])
        self.check_sarif(json.loads(self.diagnostics("sarif", "stats", code=2)))

    def test_the_schema_refuses(self):
        log = json.loads(self.diagnostics("sarif", "check", self.bad))
        for spoil in (
            lambda l: l.pop("version"),
            lambda l: l["runs"][0].pop("tool"),
            lambda l: l["runs"][0]["tool"]["driver"].pop("name"),
            lambda l: l["runs"][0]["results"][0].pop("message"),
            lambda l: l["runs"][0]["results"][0]["locations"][0]["physicalLocation"].pop("artifactLocation"),
            lambda l: l["runs"][0]["invocations"][0].pop("executionSuccessful"),
        ):
            spoiled = json.loads(json.dumps(log))
            spoil(spoiled)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.Draft202012Validator(SARIF).validate(spoiled)

    def test_annotations(self):
        lines = self.diagnostics("github", "check", self.bad).splitlines()
        self.assertTrue(all(re.match(r"::(error|warning|notice) ", line) for line in lines), lines)
        first = re.fullmatch(r"::error file=([^,]+),line=2,endLine=2,col=(\d+),endColumn=(\d+),title=PW0220::(.*)", lines[0])
        self.assertEqual(unquote(first[1]), self.bad)
        self.assertEqual(unquote(first[4]), "unknown op `rms_nrom`\nhelp: did you mean `rms_norm`?")

    def test_a_name_cannot_write_an_annotation(self):
        path = self.file("evil,x::y\n::error::z.pwr", BAD)
        lines = self.diagnostics("github", "check", path).splitlines()
        self.assertTrue(all(line.count("::") == 2 and line.startswith("::error file=") for line in lines), lines)

    def test_quiet_says_errors_only(self):
        self.assertIn("warning[PW0432]", self.pwr("check", self.unreached).stderr)
        self.assertEqual(self.pwr("-q", "check", self.unreached).stderr, "")
        self.assertIn("error[PW0220]", self.pwr("-q", "check", self.bad, code=3).stderr)
        graph = self.file("g.pwg", "graph g { in x: f32[4]\n  y = relu(x)\n  out y }\n")
        for args in (
            ["stats", graph],
            ["run", graph],
            ["plan", graph],
            ["opt", graph, "-r", "llm", "-p", "o2", "--stats"],
            ["test", "examples/first_rule.pwr"],
        ):
            done = self.pwr("-q", *args)
            self.assertEqual((done.stderr, bool(done.stdout)), ("", True), args)

    def test_a_document_that_cannot_be_written_is_an_error(self):
        done = self.pwr("check", self.unreached, "--diagnostics", "json", "--diagnostics-to", "/dev/full", code=3)
        self.assertIn("PW0001", done.stderr)

    def test_pwviz_writes_them_too(self):
        done = self.pwr(self.path("absent.json"), "--diagnostics", "json", program="pwviz", code=3)
        self.assertEqual(json.loads(done.stderr)["program"], "pwviz")


class Codes(ProgramTest):
    def listed(self):
        return json.loads(self.pwr("explain", "--codes", "--format", "json").stdout)

    def test_every_code_of_the_program_is_explained(self):
        folders = {path.parent for path in Path().glob("*/CMakeLists.txt")} - {Path("tests")}
        shown = ("diagnostic_codes.cpp", "diagnostic_examples.cpp", "rule_examples.cpp", "diagnostic.hpp")
        sources = [p for f in folders for p in Path(f).rglob("*.[ch]pp") if p.name not in shown]
        used = {code for path in sources for code in re.findall(r'"(PW\d{4})"', path.read_text(encoding="utf-8"))}
        self.assertGreater(len(used), 300)
        table = {row["code"] for row in self.listed() if row["code"].startswith("PW")}
        self.assertEqual(sorted(used - table), [], "codes without a row")
        self.assertEqual(sorted(table - used), [], "rows that nothing reports")

    def test_codes_ascend(self):
        codes = [row["code"] for row in self.listed() if row["code"].startswith("PW")]
        self.assertEqual(codes, sorted(set(codes)), "the lookup of a code is a binary search")

    def test_each_is_told(self):
        for row in self.listed()[::23]:
            text = self.pwr("explain", row["code"]).stdout
            self.assertTrue(text.startswith(f"{row['code']} {row['meaning']}\n"))
            if row["help"]:
                self.assertIn(f"help: {row['help']}\n", text)

    def test_texts_are_sentences_of_the_house(self):
        for row in self.listed():
            for text in (row["meaning"], row["help"]):
                self.assertEqual(text, text.strip(), row)
                self.assertFalse(text.endswith("."), row)
                self.assertNotRegex(text, r"\b[a-z_]+#\d", row)

    def test_what_is_no_code(self):
        for word in ("PW9999", "PW1", "N99"):
            self.assertIn(f"there is no code `{word}`", self.pwr("explain", word, code=2).stderr)
        self.assertIn("name a graph too", self.pwr("explain", "add_rms", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
