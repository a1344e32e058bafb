#!/usr/bin/python3
"""pwr report from outside: its contents, which name nothing of the machine, and equal bytes from two runs."""
import hashlib
import json
import re
import socket
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import BIN, ProgramTest  # noqa: E402

DEMO = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0"]
LLM = ["-r", "llm", "-p", "o2"]
RUN = ["--run", "--tokens", "1,7"]


class Report(ProgramTest):
    def sections(self, text):
        """The title of each section with its text."""
        parts = re.split(r"\n\n(\S[^\n]*)\n-+\n", "\n" + text)
        return dict(zip(parts[1::2], parts[2::2]))

    def test_what_stands_in_it(self):
        text = self.pwr("report", *DEMO, *LLM, *RUN).stdout
        self.assertIn("ok: all outputs of all 2 steps pass the numeric comparison", text)
        sections = self.sections(text)
        self.assertEqual(list(sections), ["Overview", "Rewriting", "Pieces", "Padding", "Memory", "Counters", "Numbers", "Graph"])
        digest = hashlib.sha256(Path(DEMO[0]).read_bytes()).hexdigest()
        for fact in (f"{DEMO[0]}  graph", digest, "pwr report " + " ".join(DEMO + LLM + RUN), "eager, seed 1", "PW1111"):
            self.assertIn(fact, sections["Overview"])
        self.assertRegex(sections["Rewriting"], r"norm_quant +4 +0 +42 +-4 +fixpoint")
        self.assertRegex(sections["Rewriting"], r"N01 +\d+")
        self.assertIn("capturable", sections["Pieces"])
        for section in ("Pieces", "Numbers"):
            self.assertNotIn("captured", sections[section])  # eager captures nothing
        self.assertRegex(sections["Padding"], r"5–8 +8 +3 +37.5 %")
        self.assertRegex(sections["Memory"], r"live at the peak of the arena: at \S+ of piece_2")
        self.assertRegex(sections["Numbers"], r"7 +8 +eager +the next planned size")
        self.assertIn("fused_add_rms_norm", sections["Graph"])
        arena = json.loads(self.pwr("plan", *DEMO, *LLM).stdout)["memory"]["arena_bytes"]
        self.assertRegex(sections["Memory"], rf"arena +{arena} ")

    def test_the_counts_are_those_of_the_tables(self):
        answer = json.loads(self.pwr("opt", *DEMO, *LLM, "--stats", "--format", "json").stdout)
        passes, rules = answer["passes"], answer["rules"]
        rewriting = self.sections(self.pwr("report", *DEMO, *LLM).stdout)["Rewriting"]
        rows = [re.split(r"  +", line.strip()) for line in rewriting.splitlines()]
        for row in passes:
            found = [r for r in rows if r[0] == row["pass"] and r[3:4] == [str(row["nodes_after"])]]
            self.assertIn(row["rewrites"], [int(matches) + int(built_in) for _, matches, built_in, *_ in found])
        tried = [row for row in rules if row["attempts"]]
        for row in tried:
            self.assertIn([row["pass"], row["rule"], str(row["matches"]), str(row["attempts"]), str(row["hits"])], [r[:5] for r in rows])
        self.assertIn(f"{len(rules) - len(tried)} more had no node to try.", rewriting)

    def test_nothing_is_run_unless_asked_for(self):
        text = self.pwr("report", *DEMO, *LLM).stdout
        self.assertIn("nothing was run", text)
        self.assertNotIn("Numbers", self.sections(text))
        self.assertIn("Memory", self.sections(self.pwr("report", *DEMO).stdout))

    def test_the_page(self):
        self.pwr("report", *DEMO, *LLM, *RUN, "-o", self.path("report.html"))
        page = Path(self.path("report.html")).read_text(encoding="utf-8")
        titles = re.findall(r'role="tabpanel"[^>]*data-title="([^"]+)"', page)
        self.assertEqual(len(titles), len(set(titles)), titles)
        for title in ("Overview", "Rewriting", "Numbers", "Graph"):
            self.assertIn(title, titles)
        self.assertIn("all outputs of all 2 steps pass", page)

    def test_the_same_bytes_and_nothing_of_the_machine(self):
        here = Path(self.folder.name, "here")
        there = Path(self.folder.name, "there")
        made = []
        for folder in (here, there):
            folder.mkdir()
            (folder / "mine.pwr").write_text('use "llm"\n', encoding="utf-8")
            (folder / "g.fx.txt").write_bytes(Path(DEMO[0]).read_bytes())
            args = [str(folder / "g.fx.txt"), *DEMO[1:], "-r", str(folder / "mine.pwr"), "-p", "o2", *RUN]
            for name in ("report.html", "report.txt"):
                self.pwr("report", *args, "-o", str(folder / name))
                made.append((folder / name).read_text(encoding="utf-8"))
        self.assertEqual(made[:2], made[2:])
        for text in made[:2]:
            for secret in (self.folder.name, str(Path.cwd()), str(BIN), socket.gethostname()):
                self.assertNotIn(secret, text)
        self.assertIn("pwr report g.fx.txt", made[1])

    def test_times_are_asked_for(self):
        timed = self.pwr("report", *DEMO, *LLM, *RUN, "--times").stdout
        self.assertRegex(timed, r"norm_quant.* (µs|ms|s)\n")
        self.assertNotRegex(self.pwr("report", *DEMO, *LLM, *RUN).stdout, r"\d (µs|ms)\b")

    def test_a_command_is_quoted(self):
        rules = self.path("it's mine.pwr")
        Path(rules).write_text('use "llm"\n', encoding="utf-8")
        text = self.pwr("report", *DEMO, "-r", rules, "-p", "o2").stdout
        self.assertIn("-r 'it'\\''s mine.pwr' -p o2", text)

    def test_wrong_usage_and_wrong_numbers(self):
        self.pwr("report", *DEMO, "-o", self.path("report.gif"), code=2)
        self.pwr("report", self.path("absent.json"), code=3)
        rules = Path(self.path("wrong.pwr"))
        rules.write_text(
            "rule wrong {\n  y = silu(x)\n  =>\n  y = neg(silu_of(x))\n}\n"
            "op silu_of(x: T[*s]) -> y: T[*s] { y = x * 0.5 }\npipeline p { once { wrong } }\n",
            encoding="utf-8",
        )
        done = self.pwr("report", *DEMO, "-r", str(rules), "-p", "p", "--run", "--tokens", "3", code=4)
        self.assertIn("FAILED: 1 of 1 step differs", done.stdout)


if __name__ == "__main__":
    unittest.main()
