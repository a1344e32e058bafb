#!/usr/bin/python3
"""The programs from outside: help, exit codes, formats, and the main job on small and on real input."""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
DUMPS = Path(os.environ.get("PW_SHARED_DATA", "../shared/data")) / "fx"
DEMO = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]


def pwr(*args, program="pwr"):
    done = subprocess.run([BIN / program, *args], capture_output=True, text=True, timeout=3600, check=False)
    if "internal error" in done.stderr or done.returncode < 0:
        raise AssertionError(f"{args}: {done.returncode}\n{done.stderr}")
    return done


def rows(done):
    """The rows of each table of an answer, in order."""
    answer = json.loads(done.stdout)
    if isinstance(answer, list):
        return [answer]
    tables = answer["graphs"][0] if "graphs" in answer else answer
    return [table for table in tables.values() if isinstance(table, list)]


class Help(unittest.TestCase):
    def test_every_command_has_help_with_an_example(self):
        for command in (
            "import export stats generate check fuzz-order fmt test verify opt explain match split plan sizes compile run report bench diff equal discover bisect reduce explore extract"
        ).split():
            done = pwr(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout, command)
            self.assertIn(f"pwr {command}", done.stdout, command)
        self.assertIn("Examples:", pwr("--help", program="pwviz").stdout)
        self.assertIn("Exit codes:", pwr("--help").stdout)

    def test_usage_errors(self):
        for args in (
            [],
            ["nonsense"],
            ["opt"],
            ["run", *DEMO, "--tokens", "seven"],
            ["run", *DEMO, "--backend", "tpu"],
            ["opt", DEMO[0], "-p", "o3", "-r", "llm"],
            ["import", DEMO[0], "-o", "x.png"],
            ["opt", DEMO[0], "-r", "llm", "-p", "o2", "-D", "tp"],
            ["import", DEMO[0], "--symbol", "n"],
        ):
            self.assertEqual(pwr(*args).returncode, 2, args)

    def test_options_leave_positional_arguments_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            a, b, graph = Path(folder, "a.pwr"), Path(folder, "b.pwr"), Path(folder, "g.pwg")
            a.write_text("rule one { y = relu(relu(x)) => y = relu(x) }\nrule two { y = neg(neg(x)) => y = x }\n", encoding="utf-8")
            b.write_text("param tp: int = 1\nrule three { y = abs(abs(x)) => y = abs(x) }\npass p = greedy { one, three }\n", encoding="utf-8")
            graph.write_text("graph g { in x: f32[4]\n  y = relu(relu(x))\n  out y }\n", encoding="utf-8")
            for args in (["-r", a, "one"], ["--rules", a, "one"], [f"--rules={a}", "one"], ["one", "-r", a], ["-r", a, "-r", b, "one"]):
                done = pwr("verify", *args, "--format", "json")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([row["rule"] for row in rows(done)[0]], ["one"], args)
            for args in (
                ["opt", "-r", a, "-r", b, "-D", "tp=2", "-p", "p", graph],
                ["opt", "-p", "p", "-r", a, "-r", b, "-D", "tp=2", graph],
                ["match", "-r", a, "y = relu(x)", graph],
                ["explain", "-r", a, "one", graph],
                ["stats", "-r", a, graph],
                ["ops", "-r", a, "relu"],
                ["plan", "--at", "relu", graph],
                ["split", "--at", "relu", "-r", a, graph],
                ["fuzz-order", "-r", a, "-r", b, "-p", "p", graph],
                ["import", "--symbol", DEMO[2], DEMO[0]],
                ["import", "--input", "arg0_1", DEMO[0]],
            ):
                self.assertEqual(pwr(*args).returncode, 0, args)
            self.assertEqual(pwr("-q", "-r", a, graph, program="pwviz").returncode, 0)

    def test_missing_capability(self):
        self.assertEqual(pwr("run", *DEMO, "--backend", "cuda").returncode, 5)

    def test_interrupt(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out.json")
            process = subprocess.Popen([BIN / "pwr", "import", "-", "-o", str(out)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 600
            while time.monotonic() < deadline:  # until the program has its handler
                caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text(encoding="ascii"))
                if int(caught[1], 16) >> (signal.SIGINT - 1) & 1:
                    break
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=3600), 130)
            process.stdin.close()
            self.assertFalse(out.exists())

    def test_missing_file(self):
        done = pwr("import", "no/such/file.json")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no/such/file.json", done.stderr)


UNKNOWN = """
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 4]", arg1_1: "f32[4]", unused):
        add: "f32[8, 4]" = torch.ops.aten.add.Tensor(arg0_1, arg1_1);  arg0_1 = arg1_1 = None
        thing: "f32[8, 4]" = torch.ops.mine.thing.default(add, 3)
        extra = torch.ops.mine.extra.default(add);  add = None
        mixer: "f32[8, 4]" = torch.ops.vllm.mamba_mixer2.default(thing, 'layers.0');  thing = None
        relu: "f32[8, 4]" = torch.ops.aten.relu.default(mixer);  mixer = None
        return (relu,)
"""
WRITES = """graph counter {
  symbol n in 1..64 tokens
  in x: f32[n, 4]
  in buffer seen: f32[4]
  m = mean(x){dim = 0, keepdim = false}
  now = add(seen, m)
  y = mul(x, now)
  out y
  write seen = now
}
"""


class UnknownOps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = Path(self.folder.name, "unknown.fx.txt")
        self.model.write_text(UNKNOWN, encoding="utf-8")

    def test_they_do_not_split_and_their_piece_is_eager(self):
        done = pwr("split", self.model, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        pieces = rows(done)[0]
        self.assertEqual([piece["runs"] for piece in pieces], ["eagerly", "eagerly", "captured"])
        plan = json.loads(pwr("plan", self.model).stdout)
        self.assertEqual([step["captured"] for step in plan["steps"]], [False, False, True])
        self.assertRegex(plan["steps"][0]["reason"], r"contains op mine\.(thing|extra)\.default, which has no kernel")
        self.assertIn("contains splitting op vllm.mamba_mixer2", plan["steps"][1]["reason"])

    def test_values_of_no_type_that_nobody_reads_are_no_obstacle(self):
        for command in (["stats"], ["plan"], ["compile", "--sources-only", "-o", Path(self.folder.name, "kernels")], ["split"]):
            done = pwr(*command[:1], self.model, *command[1:])
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        picture = Path(self.folder.name, "picture.svg")
        done = pwr(self.model, "-o", picture, program="pwviz")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mine.thing", picture.read_text(encoding="utf-8"))

    def test_a_run_names_them_before_it_begins(self):
        done = pwr("run", self.model, "--tokens", "1")
        self.assertEqual(done.returncode, 5, done.stderr)
        for op in ("mine.thing.default", "mine.extra.default", "vllm.mamba_mixer2"):
            self.assertIn(op, done.stderr)
        self.assertIn("host function", done.stderr)


class Writes(unittest.TestCase):
    def test_the_next_step_sees_them(self):
        with tempfile.TemporaryDirectory() as folder:
            model, saved = Path(folder, "counter.pwg"), Path(folder, "out.safetensors")
            model.write_text(WRITES, encoding="utf-8")
            for backend in (["eager"], ["cpu"], ["interpreter"], ["cuda", "--driver", "host"]):
                done = pwr("run", model, "--tokens", "2,2,2", "--no-pad", "--check", "--save", saved, "--backend", *backend)
                self.assertEqual(done.returncode, 0, f"{backend}: {done.stderr}")
                self.assertIn("writes seen (buffer)", done.stderr)
                data = saved.read_bytes()
                size = int.from_bytes(data[:8], "little")
                header = json.loads(data[8 : 8 + size])
                self.assertEqual({name.split("@")[0] for name in header if name != "__metadata__"}, {"y", "seen"})

                def floats(name, header=header, data=data, size=size):
                    begin, end = header[name]["data_offsets"]
                    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin : 8 + size + end])

                first, second, third = (floats(f"seen@{step}") for step in range(3))
                # Each step has the same tokens, so it adds the same.
                for a, b, c in zip(first, second, third):
                    self.assertAlmostEqual(b - a, c - b, places=5)
                self.assertNotEqual(first, second)
                done = pwr("run", model, "--tokens", "2,2,2", "--no-pad", "--expect", saved, "--backend", *backend)
                self.assertEqual(done.returncode, 0, f"{backend}: {done.stderr}")

    def test_both_forms_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            model, as_json, again = (Path(folder, name) for name in ("counter.pwg", "counter.json", "again.pwg"))
            model.write_text(WRITES, encoding="utf-8")
            self.assertEqual(pwr("import", model, "-o", as_json).returncode, 0)
            self.assertEqual(json.loads(as_json.read_text(encoding="utf-8"))["writes"], {"seen": "now"})
            done = pwr("import", as_json, "-o", again)
            self.assertIn("1 output, writes seen", done.stderr)
            self.assertIn("  out y\n  write seen = now\n}", again.read_text(encoding="utf-8"))
            self.assertEqual(pwr("diff", model, again).returncode, 0)
            again.write_text(again.read_text(encoding="utf-8").replace("  write seen = now\n", ""), encoding="utf-8")
            self.assertNotEqual(pwr("diff", model, again).returncode, 0)


class MainJob(unittest.TestCase):
    def test_demo_model(self):
        with tempfile.TemporaryDirectory() as folder:
            done = pwr("run", *DEMO, "-r", "rules/llm.pwr", "-p", "o2", "--tokens", "1,7", "--check", "--report", folder, "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            page = Path(folder, "report.html").read_text(encoding="utf-8")
            for title in ("Overview", "Rewriting", "Numbers", "Graph", "Sizes and padding", "Memory"):
                self.assertEqual(page.count(f'data-title="{title}"'), 1, title)
            self.assertNotRegex(page, r'(src|href)="https?:')
            self.assertEqual(sorted(os.listdir(folder)), ["journal.jsonl", "plan.json", "report.html", "report.json", "report.txt"])
            self.assertEqual(json.loads(Path(folder, "plan.json").read_text(encoding="utf-8"))["steps"][1]["captured"], False)
        passes, steps, numbers, ties = rows(done)
        self.assertEqual(ties, [])
        self.assertEqual(
            {p["pass"]: p["rewrites"] for p in passes if p["pass"] != "clean" and p["rewrites"]},
            {"norm": 1, "norm_quant": 4, "activation": 1, "activation_quant": 2, "attention_quant": 1},
        )
        self.assertEqual([(s["tokens"], s["runs_as"]) for s in steps], [(1, 1), (7, 8)])
        self.assertEqual({n["result"] for n in numbers}, {"ok"})

    def test_same_bytes_twice(self):
        outputs = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder, "out.json")
                trace = Path(folder, "trace")
                self.assertEqual(pwr("opt", *DEMO, "-r", "llm", "-p", "o2", "-o", str(out), "--trace", str(trace)).returncode, 0)
                page = Path(folder, "page.html")
                self.assertEqual(pwr(*DEMO, "-r", "llm", "-p", "norm_quant", "-o", str(page), program="pwviz").returncode, 0)
                outputs.append([out.read_bytes(), (trace / "journal.jsonl").read_bytes(), page.read_bytes(), pwr("plan", str(out)).stdout])
        self.assertEqual(outputs[0], outputs[1])

    def test_wrong_rule_is_a_numeric_mismatch(self):
        with tempfile.TemporaryDirectory() as folder:
            rules = Path(folder, "wrong.pwr")
            rules.write_text(
                "rule wrong {\n  y = silu(x)\n  =>\n  y = neg(silu_of(x))\n}\n"
                "op silu_of(x: T[*s]) -> y: T[*s] { y = x * 0.5 }\npipeline p { once { wrong } }\n",
                encoding="utf-8",
            )
            done = pwr("run", *DEMO, "-r", str(rules), "-p", "p", "--tokens", "3", "--check")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("FAILED", done.stdout)

    def test_explain(self):
        done = pwr("explain", "rms_quant_dyn", *DEMO, "-r", "llm")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"note\[N\d\d\]")
        self.assertIn("extra users", pwr("explain", "N08").stdout)

    def test_explain_a_pipeline(self):
        done = pwr("--format", "json", "explain", "rms_quant", *DEMO, "-r", "llm", "-p", "o2", "--expect", "99")
        self.assertEqual(done.returncode, 1)
        notice = json.loads(done.stdout)
        self.assertIn("N10", {miss["code"] for miss in notice["near_misses"]})
        self.assertEqual(pwr("explain", "rms_quant", *DEMO, "-r", "llm", "--before", "norm").returncode, 2)
        self.assertEqual(pwr("explain", "rms_quant", *DEMO, "-r", "llm", "-p", "o2", "--before", "no_such").returncode, 2)

    def test_engines_and_their_program(self):
        compiled, naive = (pwr("opt", *DEMO, "-r", "llm", "-p", "o2", "--engine", e, "-o", "-") for e in ("compiled", "naive"))
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertIn("fused_add_rms_norm", compiled.stdout)
        ops = [re.findall(r'"op": ?"([^"]+)"', done.stdout) for done in (compiled, naive)]
        self.assertEqual(*ops)
        program = pwr("opt", *DEMO, "-r", "llm", "-p", "norm_quant", "--emit", "matcher")
        self.assertIn("accept `rms_quant`", program.stdout)
        self.assertIn("N01", program.stdout)

    def test_match(self):
        found = pwr("match", "y = mul(silu(g), u)", *DEMO)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("silu", found.stdout)
        missed = pwr("match", "y = relu(mul(silu(g), u))", *DEMO)
        self.assertEqual(missed.returncode, 1)
        self.assertIn("N01", missed.stdout)
        for text in ("y = ", "=> y = x", "y = no_such_op(x)", "}", "rule r { y = x => y = x }"):
            wrong = pwr("match", text, *DEMO)
            self.assertEqual(wrong.returncode, 3, text)
            self.assertIn("error[PW", wrong.stderr)

    def test_generated_llama(self):
        with tempfile.TemporaryDirectory() as folder:
            graph = str(Path(folder, "llama.json"))
            self.assertEqual(
                pwr(
                    "generate", "llama", "--layers", "12", "--hidden", "128", "--heads", "4", "--kv-heads", "2", "--ffn", "256", "-o", graph
                ).returncode,
                0,
            )
            for rules in ([], ["-r", "llm", "-p", "o2"]):
                done = pwr("split", graph, *rules)
                self.assertIn("25 pieces, 13 capturable, 3 classes", done.stderr)
            picture = Path(folder, "llama.png")
            self.assertEqual(pwr(graph, "-r", "llm", "-p", "o2", "-o", str(picture), program="pwviz").returncode, 0)
            self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))

    def test_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            done = pwr("compile", *DEMO, "-r", "llm", "-p", "o2", "-o", folder, "--sources-only")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(list(Path(folder).glob("class_*/*.cu")))
            self.assertTrue(Path(folder, "report.json").exists())

    def test_a_rule_of_ones_own_gets_a_kernel(self):
        done = pwr("test", "examples/own_kernel.pwr")
        self.assertEqual(done.returncode, 0, done.stdout)
        readme, rule = Path("README.md").read_text(encoding="utf-8"), Path("examples/own_kernel.pwr").read_text(encoding="utf-8")
        own = rule[rule.index("rule gated_quant") : rule.index("pipeline fuse")].rstrip()
        self.assertIn(f"```\n{own}\n```", readme)
        command = re.search(r"^    pwr (compile examples/gated.*) -o kernels/$", readme, flags=re.M).group(1).split()
        with tempfile.TemporaryDirectory() as folder:
            done = pwr(*command, "-o", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
            self.assertEqual([k["op"] for k in report["kernels"]], ["gated_quant"])
            self.assertEqual([n["kind"] for c in report["classes"] for n in c["nodes"]], ["kernel"])
            self.assertTrue(list(Path(folder).glob("class_*/*.cu")))

    def test_compile_for_several_architectures(self):
        with tempfile.TemporaryDirectory() as folder:
            done = pwr("compile", "examples/gated.pwg", "--arch", "sm_80,sm_90", "--grouping", "none", "-o", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
            self.assertEqual(report["archs"], ["sm_80", "sm_90"])
            self.assertEqual(len(report["kernels"]), 3)
            for kernel in report["kernels"]:
                self.assertEqual(len(kernel["targets"]), 2 if report["compiled"] else 0)
                for target in kernel["targets"]:
                    self.assertEqual(target["spill_stores"] + target["spill_loads"], 0)
                    self.assertGreater(target["wide_reads"], 0)
                    self.assertTrue(Path(folder, target["cubin"]).exists())
        done = pwr("compile", "examples/gated.pwg", "--arch", "sm_12", "-o", "nowhere")
        self.assertNotEqual(done.returncode, 0)

    def test_captured_on_the_host(self):
        run = ["run", *DEMO, "-r", "llm", "-p", "o2", "--backend", "cuda", "--driver", "host", "--tokens", "1,3,9", "--sizes", "1,2,4"]
        done = pwr(*run, "--check", "--format", "csv")
        if "no C++ compiler" in done.stderr:
            self.skipTest("no C++ compiler")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 5 pieces captured, 3 classes compiled; 12 graphs, 3 of them whole steps, 12 executables", done.stderr)
        self.assertRegex(done.stdout, r"\n3,4,captured,")
        self.assertRegex(done.stdout, r"\n9,9,eager,")
        done = pwr(*run, "--ranks", "2")
        self.assertEqual(done.returncode, 5)

    def test_sequences_that_go_on(self):
        run = ["run", *DEMO, "-r", "llm", "-p", "o2", "--check", "--format", "csv"]
        done = pwr(*run, "--steps", "examples/chat.steps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\n7,8,eager,[^\n]*the next planned size\n6,8,eager,[^\n]*\n2,2,eager,[^\n]*a planned size")
        with tempfile.TemporaryDirectory() as folder:
            steps = Path(folder, "bad.steps")
            steps.write_text("0:7\n0:1 1:x\n", encoding="utf-8")
            done = pwr(*run, "--steps", str(steps))
            self.assertEqual(done.returncode, 3)
            self.assertIn("bad.steps:2:5", done.stderr)
            self.assertEqual(pwr(*run, "--steps", str(Path(folder, "none"))).returncode, 3)

    def test_tune(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "schedules.json")
            tune = ["tune", "examples/gated.pwg", "--tokens", "1,4096", "-o", str(table)]
            done = pwr(*tune)
            if done.returncode == 5:
                self.assertIn("NVRTC", done.stderr)
                self.skipTest("NVRTC is absent")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("not measurements", done.stderr)
            first = table.read_bytes()
            entries = json.loads(first)["schedules"]
            self.assertEqual({e["arch"] for e in entries}, {"sm_90"})
            self.assertEqual(len(entries) % 2, 0)
            self.assertEqual(pwr(*tune, "--arch", "sm_80,sm_90").returncode, 0)
            more = json.loads(table.read_text(encoding="utf-8"))["schedules"]
            self.assertEqual([e for e in more if e["arch"] == "sm_90"], entries)
            self.assertEqual(len(more), 2 * len(entries))
            # What is in the table is what is compiled.
            for e in more:
                e["schedule"]["resident"] = 3
            table.write_text(json.dumps({"format": "piecewise.schedules/1", "schedules": more}), encoding="utf-8")
            out = Path(folder, "out")
            done = pwr("compile", "examples/gated.pwg", "--schedules", str(table), "-o", str(out))
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads((out / "report.json").read_text(encoding="utf-8"))
            for kernel in report["kernels"]:
                self.assertEqual(kernel["schedule"]["resident"], 3)
                self.assertRegex(Path(out, kernel["source"]).read_text(encoding="utf-8"), r"__launch_bounds__\(\d+, 3\)")
            table.write_text('{"format": "piecewise.schedules/1", "schedules": [{"program": 3}]}', encoding="utf-8")
            before = table.read_bytes()
            for command in (tune, ["compile", "examples/gated.pwg", "--schedules", str(table), "-o", str(out)]):
                done = pwr(*command)
                self.assertEqual(done.returncode, 3)
                self.assertIn("schedules[0]: `program` is not a string", done.stderr)
            self.assertEqual(table.read_bytes(), before)

    def test_the_examples_of_the_language_pass(self):
        done = pwr("test", "examples/language.pwr")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\b1\d tests, 0 failed")

    def test_rules_pass_their_tests(self):
        done = pwr("test", "rules", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stdout)
        tests = rows(done)[0]
        self.assertGreaterEqual(len(tests), 25)
        self.assertGreaterEqual(sum(t["negative"] for t in tests), 8)

    def test_rules_are_formatted(self):
        files = [str(p) for p in sorted(Path("rules").rglob("*.pwr"))]
        done = pwr("fmt", "--check", *files)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


@unittest.skipUnless(DUMPS.is_dir(), f"SKIPPED: no dumps at {DUMPS}")
class RealDumps(unittest.TestCase):
    def run_dump(self, name, *more):
        with tempfile.TemporaryDirectory() as folder:
            graph = str(Path(folder, "q.json"))
            done = pwr("import", str(DUMPS / name), "--symbol", "n=arg0_1.0,arg6_1.0", "-o", graph)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("opaque", done.stderr)
            done = pwr(
                "run", graph, "-r", "rules/llm.pwr", "-p", "o2", "--backend", "eager", "--tokens", "1,7,16,300", "--check", "--format", "json", *more
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 pieces, 2 capturable", done.stderr)
        passes, steps, numbers, ties = rows(done)
        self.assertEqual(ties, [])
        self.assertEqual([(s["tokens"], s["runs_as"]) for s in steps], [(1, 1), (7, 8), (16, 16), (300, 304)])
        self.assertEqual({n["result"] for n in numbers}, {"ok"})
        return {p["pass"]: p["rewrites"] for p in passes}, done.stderr

    def test_qwen2_one_rank(self):
        self.run_dump("qwen2-1.5b.tp1.layer1.fx.txt")

    def test_qwen2_two_ranks(self):
        passes, messages = self.run_dump("qwen2-1.5b.tp2.rank0.layer1.fx.txt", "-D", "tp=2")
        self.assertEqual(passes["allreduce"], 3)
        self.assertIn("collectives run as the identity", messages)

    def test_megatron_keeps_unknown_ops(self):
        done = pwr("import", str(DUMPS / "megatron-gpt.tp2.layer1.fx.txt"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("opaque: ", done.stderr)


if __name__ == "__main__":
    if not (BIN / "pwr").exists():
        sys.exit(f"{BIN}/pwr is not built")
    unittest.main()
