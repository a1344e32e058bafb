#!/usr/bin/python3
"""pwr bench and --dump from outside: what is counted and how it is put together. No test reads a time's size."""
import json
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402


class Bench(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.make(
            "model.json",
            "generate",
            "moe",
            "--layers",
            "2",
            "--experts",
            "2",
            "--hidden",
            "64",
            "--heads",
            "4",
            "--kv-heads",
            "2",
            "--ffn",
            "96",
            "--vocab",
            "64",
        )

    def tables(self, *args):
        return list(json.loads(self.pwr("bench", self.model, "--repeats", "2", *args, "--format", "json").stdout).values())

    def check_totals(self, steps, totals, counts=None):
        counts = counts or [1] * len(steps)
        for total, column in zip(totals, ("time_s", "eager_s")):
            summed = sum(n * step[column] for n, step in zip(counts, steps))
            self.assertAlmostEqual(total["time_s"], summed, delta=1e-9 * sum(counts))

    def test_where_nothing_is_captured_nothing_says_so(self):
        for backend in ("eager", "cpu", "interpreter"):
            steps, pieces, _ = self.tables("--backend", backend, "--tokens", "3,4", "--pieces")
            self.assertEqual([(s["runs_as"], s["mode"], s["key"], s["graphs"]) for s in steps], [(4, "eager", "", 0)] * 2)
            self.assertEqual({p["mode"] for p in pieces}, {"eager"})
            for form in ("table", "json", "csv"):
                for command in (["bench", "--repeats", "1"], ["run"]):
                    self.assertNotIn(
                        "captured", self.pwr(command[0], self.model, *command[1:], "--backend", backend, "--tokens", "3", "--format", form).stdout
                    )

    def test_replayed_and_launched_steps_are_told_apart(self):
        traffic = self.file("traffic.txt", "0:3\n0:1 1:5\n0:1 1:1 1.\n0:9\n")
        steps, pieces, totals = self.tables(
            "--backend", "cuda", "--driver", "host", "--sizes", "2,4,8", "--max-tokens", "16", "--steps", traffic, "--pieces"
        )
        self.assertEqual(
            [(s["tokens"], s["sequences"], s["runs_as"], s["mode"], s["key"], s["padding"], s["graphs"]) for s in steps],
            [
                (3, 1, 4, "captured", "4 tokens", 1, 3),
                (6, 2, 8, "captured", "8 tokens", 2, 3),
                (2, 2, 2, "captured", "2 tokens", 0, 3),
                (9, 1, 9, "eager", "", 0, 0),
            ],
        )
        self.assertEqual(len({(s["kernels"], s["library"]) for s in steps}), 1)
        self.assertEqual(steps[0]["library"], 2 * (2 + 1 + 2 * 2) + 2)  # products of attention, router, experts; attention
        self.assertEqual({p["runs_as"] for p in pieces}, {2, 4, 8, 9})
        for size in (2, 4, 8, 9):
            self.assertAlmostEqual(sum(p["share_percent"] for p in pieces if p["runs_as"] == size), 100, delta=0.5)
        self.assertEqual({p["mode"] for p in pieces if p["runs_as"] == 9}, {"eager"})
        self.assertEqual([t["all_steps"] for t in totals], ["as planned", "eager, at their own sizes", "all padded to 9"])
        self.assertEqual(totals[0]["of_planned"], 1)
        self.check_totals(steps, totals)

    def test_every_backend(self):
        for backend in ("eager", "cpu"):
            steps, totals = self.tables("--backend", backend, "-r", "llm", "-p", "o2", "--tokens", "1,3")
            self.assertEqual([s["runs_as"] for s in steps], [1, 4])
            self.assertGreater(steps[0]["kernels"], 0)
            self.check_totals(steps, totals)

    def test_a_histogram_weighs_the_steps(self):
        counts = self.file("counts.csv", "tokens,count\n1,90\n7,10\n")
        steps, totals = self.tables("--histogram", counts)
        self.assertEqual([(s["tokens"], s["count"]) for s in steps], [(1, 90), (7, 10)])
        self.check_totals(steps, totals, [90, 10])
        self.assertIn("PW0731", self.pwr("bench", self.model, "--histogram", self.file("bad.csv", "7 many\n"), code=3).stderr)

    def test_a_dump_holds_all_of_a_run(self):
        traffic, dumps = self.file("t.txt", "0:3\n0:1 1:5\n"), [Path(self.folder.name, name) for name in ("one", "two")]
        for folder in dumps:
            self.pwr(
                "run",
                self.model,
                "-r",
                "llm",
                "-p",
                "o2",
                "--backend",
                "cuda",
                "--driver",
                "host",
                "--sizes",
                "2,4,8",
                "--max-tokens",
                "16",
                "--steps",
                traffic,
                "--strict",
                "--check",
                "--dump",
                str(folder),
            )
        files = sorted(path.relative_to(dumps[0]) for path in dumps[0].rglob("*") if path.is_file())
        for path in files:
            self.assertEqual(Path(dumps[0], path).read_bytes(), Path(dumps[1], path).read_bytes(), path)
        names = [str(path) for path in files]
        for name in (
            "stitch.pwg",
            "pieces/piece_0.pwg",
            "pieces/piece_4.pwg",
            "passes/00-input.pwg",
            "passes/journal.jsonl",
            "kernels/report.json",
            "plan.json",
            "stats.json",
        ):
            self.assertIn(name, names)
        self.assertTrue(any(name.endswith(".cu") for name in names))
        stats = json.loads(Path(dumps[0], "stats.json").read_text(encoding="utf-8"))
        self.assertEqual(stats["counters"]["pieces"], 5)
        self.assertEqual(
            (stats["device"]["compilations"], stats["device"]["graphs_captured"], stats["device"]["replays"], stats["device"]["stale"]),
            (3, 3 * 3 + 3, 6, 0),
        )  # pieces, and whole decodes
        self.assertEqual([(s["tokens"], s["rows"], s["graphs"]) for s in stats["steps"]], [(3, 4, 3), (6, 8, 3)])
        self.assertGreater(sum(rule["matches"] for rule in stats["rules"]), 0)
        for piece in names:
            if piece.startswith("pieces/"):
                self.pwr("stats", str(Path(dumps[0], piece)))

    def test_a_dump_of_other_commands(self):
        folder = Path(self.folder.name, "compiled")
        self.pwr("compile", self.model, "-r", "llm", "-p", "o2", "--sources-only", "-o", str(folder), "--dump", str(folder / "dump"))
        self.assertTrue(Path(folder, "dump", "passes", "00-input.pwg").exists())
        dump = Path(self.folder.name, "cpu")
        self.pwr("run", self.model, "--backend", "cpu", "--tokens", "1", "--dump", str(dump))
        self.assertTrue(Path(dump, "kernels", "cpu", "k_000.cpp").exists())
        self.assertIn("cache", json.loads(Path(dump, "stats.json").read_text(encoding="utf-8")))

    def test_formats_and_refusals(self):
        csv = self.pwr("bench", self.model, "--tokens", "1", "--repeats", "1", "--format", "csv").stdout.splitlines()
        self.assertEqual(csv[0].split(",")[:3], ["tokens", "sequences", "runs_as"])
        self.pwr("bench", self.model, "--repeats", "0", code=2)
        self.pwr("bench", self.model, "--tokens", "9000", code=2)
        self.pwr("bench", self.model, "--backend", "tpu", code=2)
        self.pwr("bench", str(Path(self.folder.name, "absent.json")), code=3)


if __name__ == "__main__":
    unittest.main()
