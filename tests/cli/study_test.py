#!/usr/bin/python3
"""Studies: shards that are killed and resumed, together or in files of their own, make the table of one run, bit for bit.

PW_STUDY_GRAPHS is the number of generated graphs, PW_STUDY_ORDERS the number of orders of each. With more than three graphs, dumps of
../shared/data (PW_SHARED_DATA) are added.
"""
import csv
import io
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from program import BIN, ProgramTest

GRAPHS = int(os.environ.get("PW_STUDY_GRAPHS", "3"))
ORDERS = int(os.environ.get("PW_STUDY_ORDERS", "200"))
DUMPS = Path(os.environ.get("PW_SHARED_DATA") or "../shared/data") / "fx"
SHARDS = 4
FAMILIES = ("llama", "qwen3", "gemma2", "llama3", "mixtral", "gpt-oss", "opt", "qwen2", "gemma3", "deepseek-v2")
PASSES = "norm,rope,norm_quant,attention_quant,activation,activation_quant,allreduce_quant"
SEED = int(os.environ.get("PW_STUDY_SEED", "1"))


class Study(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = random.Random(SEED)
        cls.graphs = []
        for i in range(GRAPHS):
            again, quant = i // len(FAMILIES), ("fp8", "none")[(i + i // len(FAMILIES)) % 2]
            name = f"{i:02}-{FAMILIES[i % len(FAMILIES)]}.json"
            cls.graphs.append(cls.make(name, "generate", FAMILIES[i % len(FAMILIES)], "--layers", str(2 + again), "--quant", quant, "--tp", "2"))
        if GRAPHS > 3 and DUMPS.is_dir():
            # In place of as many generated ones: the number of graphs is the requested one.
            dumps = sorted(DUMPS.glob("*.fx.txt"))
            cls.graphs[len(cls.graphs) - len(dumps) :] = [str(path) for path in dumps]
        begin = time.monotonic()
        cls.whole = cls.path("whole.db")
        done = subprocess.run(cls.command(cls.whole), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        cls.seconds = time.monotonic() - begin

    @classmethod
    def command(cls, file, shard="1/1"):
        space = ["--passes", PASSES, "--by", "nodes,bytes", "--sample", str(ORDERS), "--seed", "5", "-D", "tp=2"]
        return [str(BIN / "pwr"), "explore", *cls.graphs, "-r", "llm", *space, "--study", file, "--shard", shard]

    def rows(self, file):
        return self.pwr("explore", "--study", file, "--rows", "--format", "csv").stdout

    @staticmethod
    def count(file):
        """Units that are there; none where the file has no tables yet."""
        try:
            with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
                return database.execute("SELECT count(*) FROM units").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    @staticmethod
    def dump(file):
        """Every table, row by row."""
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
            return "\n".join(database.iterdump())

    def run_killed(self, file, shard, kills):
        """Kills the shard several times at random, then lets it end. How often it had done some, and not all."""
        partial = 0
        for _ in range(kills):
            before = self.count(file)
            process = subprocess.Popen(self.command(file, shard), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if self.random.random() < 0.8:  # else wherever it is, which may be before the first unit
                while self.count(file) == before and process.poll() is None:
                    time.sleep(0.001)
            time.sleep(self.random.uniform(0, self.seconds / (2 * SHARDS)))
            process.send_signal(signal.SIGKILL)
            if process.wait() == -signal.SIGKILL and self.count(file) > before:
                partial += 1
        done = subprocess.run(self.command(file, shard), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return partial

    def merged(self, name, parts):
        file = self.path(name)
        self.pwr("explore", "--merge", file, *parts)
        return Path(file).read_bytes()

    def test_a_row_a_unit(self):
        table = list(csv.DictReader(io.StringIO(self.rows(self.whole))))
        self.assertEqual(len(table), len(self.graphs) * ORDERS)
        self.assertEqual({row["graph"] for row in table}, set(self.graphs))
        orders = {row["order"] for row in table if row["graph"] == self.graphs[0]}
        self.assertEqual(len(orders), ORDERS)
        self.assertTrue(all(sorted(json.loads(order)) == sorted(PASSES.split(",")) for order in orders))
        self.assertEqual(
            json.loads(self.pwr("explore", "--study", self.whole, "--rows", "--format", "json").stdout)[0]["order"], json.loads(table[0]["order"])
        )

    def test_rows_are_what_the_orders_do(self):
        table = list(csv.DictReader(io.StringIO(self.rows(self.whole))))
        for row in self.random.sample(table, 5):
            rules = self.file("order.pwr", 'use "llm"\npipeline this { ' + " ".join(json.loads(row["order"])) + " }")
            after = self.path("after.json")
            self.pwr("opt", row["graph"], "-r", rules, "-p", "this", "-D", "tp=2", "-o", after)
            self.assertEqual(json.loads(self.pwr("stats", after, "--format", "json").stdout)["nodes"], int(row["nodes"]))

    def test_shards_in_files_of_their_own(self):
        parts = [self.path(f"part{number}.db") for number in range(1, SHARDS + 1)]
        partial = sum(self.run_killed(part, f"{i + 1}/{SHARDS}", 2) for i, part in enumerate(parts))
        self.assertTrue(all(0 < self.count(part) < len(self.graphs) * ORDERS for part in parts))
        self.assertEqual(sum(self.count(part) for part in parts), len(self.graphs) * ORDERS)
        merged = self.merged("merged.db", parts)
        self.assertEqual(self.rows(self.path("merged.db")), self.rows(self.whole))
        self.assertEqual(self.dump(self.path("merged.db")), self.dump(self.whole))
        self.assertEqual(merged, self.merged("merged_whole.db", [self.whole]))
        self.assertEqual(merged, self.merged("merged_again.db", reversed(parts)))
        print(f"{partial} of {2 * SHARDS} kills met a shard that had done some units and not all", file=sys.stderr)

    def test_killed_between_units(self):
        """Wherever it is killed: the attempts go on until one has met a study that is half done."""
        file = self.path("half.db")
        half = 0
        for attempt in range(200):
            if half >= 3:
                break
            Path(file).unlink(missing_ok=True)
            process = subprocess.Popen(self.command(file), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while self.count(file) == 0 and process.poll() is None:
                time.sleep(0.001)
            time.sleep(self.random.uniform(0, self.seconds / 4))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if not 0 < self.count(file) < len(self.graphs) * ORDERS:
                continue
            half += 1
            done = self.pwr(*self.command(file)[1:])
            self.assertRegex(done.stderr, r"units, [1-9]\d* of them already done")
            self.assertEqual(self.dump(file), self.dump(self.whole))
        self.assertGreaterEqual(half, 3)

    def test_shards_at_once_in_one_file(self):
        file = self.path("together.db")
        problems = []

        def work(number):
            try:
                self.run_killed(file, f"{number}/{SHARDS}", 1)
            except AssertionError as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, SHARDS + 1)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(problems, [])
        self.assertEqual(self.rows(file), self.rows(self.whole))
        self.assertEqual(self.dump(file), self.dump(self.whole))

    def test_other_numbers_of_shards_take_it_over(self):
        file = self.path("taken.db")
        self.pwr(*self.command(file, "2/3")[1:])
        self.pwr(*self.command(file)[1:])
        self.assertEqual(self.dump(file), self.dump(self.whole))

    def test_nothing_is_done_twice(self):
        done = self.pwr(*self.command(self.whole)[1:])
        self.assertIn(f"{len(self.graphs) * ORDERS} units, {len(self.graphs) * ORDERS} of them already done", done.stderr)

    def test_other_rules_are_other_units(self):
        file = self.path("rules.db")
        graph = self.file("small.pwg", "graph g { in x: f32[8] y = relu(relu(neg(neg(x)))) out y }")
        for k in ("relu", "abs"):
            rules = self.file("rules.pwr", f"rule a {{ y = relu(relu(x)) => y = {k}(x) }} rule b {{ y = neg(neg(x)) => y = x }}")
            self.pwr("explore", graph, "-r", rules, "--passes", "a,b", "--study", file)
        self.assertEqual(self.count(file), 4)

    def test_contradictions_and_strangers_are_said(self):
        broken = self.path("broken.db")
        Path(broken).write_bytes(Path(self.whole).read_bytes())
        with sqlite3.connect(broken) as database:
            database.execute("UPDATE units SET state = 'other' WHERE unit = (SELECT min(unit) FROM units)")
        database.close()
        self.assertIn("PW1461", self.pwr("explore", "--merge", broken, self.whole, "--diagnostics", "json", code=2).stderr)
        text = self.file("text.db", "no database")
        other = self.path("other.db")
        with sqlite3.connect(other) as database:
            database.execute("CREATE TABLE t (a)")
        database.close()
        for file in (text, other, self.path("no/such/folder.db")):
            self.assertIn("PW1460", self.pwr("explore", "--study", file, "--diagnostics", "json", code=2).stderr)
        for shard in ("0/4", "5/4", "1", "a/b", "1/0", "-1/2"):
            self.assertIn("PW1462", self.pwr(*self.command(self.path("none.db"), shard)[1:], "--diagnostics", "json", code=2).stderr)
        self.pwr("explore", *self.graphs[:2], "-r", "llm", "-p", "o1", code=2)
        self.pwr("explore", code=2)

    def test_the_page(self):
        page = self.path("study.html")
        self.pwr("explore", "--study", self.whole, "--report", page)
        text = Path(page).read_text()
        for word in ("Best orders", "Rules that take each other's nodes", "<svg", 'class="best"', 'class="front"'):
            self.assertIn(word, text)
        self.assertNotIn("<script", text)
        again = self.path("again.html")
        self.pwr("explore", "--study", self.whole, "--report", again)
        self.assertEqual(Path(again).read_text(), text)


class Spread(ProgramTest):
    """The cluster examples, run as processes: with the cluster's own Python package if it is installed, otherwise with an emulation of it."""

    def setUp(self):
        self.words = [
            self.make("g.json", "generate", "llama", "--layers", "1", "--quant", "fp8"),
            "-r",
            "llm",
            "--passes",
            "norm,rope,activation,norm_quant",
        ]
        self.whole = self.path("spread_whole.db")
        self.pwr("explore", *self.words, "--study", self.whole)

    def call(self, *command, **more):
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **more}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def same(self, file):
        self.assertEqual(Study.dump(file), Study.dump(self.whole))

    def test_slurm(self):
        file = self.path("slurm.db")
        for task in (1, 2, 3):
            self.call("bash", "examples/study/slurm.sh", file, *self.words, SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT="3")
        self.pwr("explore", "--merge", file, *(f"{file}.{task}" for task in (1, 2, 3)))
        self.same(file)

    def spread(self, name, module):
        file = self.path(f"{name}.db")
        own = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0
        path = [str(Path(__file__).parent / "emulated")] if own else []
        self.call(sys.executable, f"examples/study/with_{name}.py", "3", file, *self.words, PYTHONPATH=":".join(path))
        self.same(file)

    def test_ray(self):
        self.spread("ray", "ray")

    def test_dask(self):
        self.spread("dask", "dask.distributed")


if __name__ == "__main__":
    unittest.main()
