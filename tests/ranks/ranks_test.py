#!/usr/bin/python3
"""Ranks that are processes: the bits of one process, plans that would hang, ranks that die."""
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import BIN, ProgramTest  # noqa: E402

# Token counts that are not multiples of the ranks, and one above the captured sizes.
TOKENS = "1,7,16,33"
LLAMA = ["--layers", "2", "--hidden", "256", "--heads", "8", "--kv-heads", "8", "--ffn", "512", "--vocab", "512"]
FAMILIES = {"llama": ["llama", *LLAMA], "llama-fp8": ["llama", *LLAMA, "--quant", "fp8"], "mixture": ["moe", *LLAMA, "--experts", "3"]}
SMALL = ["--layers", "2", "--hidden", "128", "--heads", "8", "--ffn", "128", "--vocab", "256"]
EXPERTS = ("llama4", "qwen3-moe", "mixtral", "deepseek-v2", "deepseek-v3", "gpt-oss")
MODELS = ("llama3", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "opt", "gpt2", *EXPERTS)
# Two layers of experts that share the rows out among ranks, and the product between them.
SHARED_ROWS = """graph experts {
  symbol n in 1..64 tokens
  in e: bf16[n, 64], weight w: bf16[64] replicated "tp", weight u: bf16[64] replicated "tp"
  in weight v: bf16[64] replicated "tp", weight m: bf16[64, 64], weight o: bf16[64, 64]
  h = all_reduce(e){group = "tp"}
  x = rms_norm(h, w)
  y, r = fused_add_rms_norm(all_reduce(mm(x, m)){group = "tp"}, h, u)
  z = silu(shard_padded(y){world = RANKS, group = "tp"})
  g = slice(all_gather(z){dim = 0, world = RANKS, group = "tp"}){dim = 0, end = n}
  p, s = fused_add_rms_norm(g, r, v)
  q, t = fused_add_rms_norm(all_reduce(mm(p, o)){group = "tp"}, s, u)
  k = neg(shard_padded(q){world = RANKS, group = "tp"})
  a = slice(all_gather(k){dim = 0, world = RANKS, group = "tp"}){dim = 0, end = n}
  out a, t
}
"""
# More ranks than cores: they give the processor away, and talk through memory.
OPTIONS = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "vader,self", "--mca", "btl_vader_single_copy_mechanism", "none"]
GONE = 60.0  # seconds within which no rank lives, on a machine with other work


def divided(text):
    """An embedding with a divided vocabulary: each rank has rows of the table, and the parts are summed."""
    plain = "embedded = embedding(embed_w, ids)"
    return text.replace(plain, plain.replace("embedded", "embed_part") + '\n  embedded = all_reduce(embed_part){group = "tp"}')


def launched(*programs):
    """Arguments of mpirun: (ranks, arguments of pwr) for each group of equal ranks."""
    args = ["mpirun", *OPTIONS]
    for i, (ranks, own) in enumerate(programs):
        args += [":"] * (i > 0) + ["-n", str(ranks), str(BIN / "pwr"), *own]
    return args


def environment():
    """Returns variables of processes with MPI, whose library leaks memory."""
    leaks = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"
    return {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", "ASAN_OPTIONS": leaks}


def children_of(pid):
    """The processes of pwr below one."""
    out = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split() if entry.name.isdigit() else []
            if fields and int(fields[1]) == pid and fields[0] != "Z" and (entry / "comm").read_text().strip() == "pwr":
                out.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return sorted(out)


def options_of(family):
    """Arguments of pwr generate."""
    if family in FAMILIES:
        return FAMILIES[family]
    return [family, *SMALL, *(["--experts", "4"] if family in EXPERTS else [])]


class RanksTest(ProgramTest):
    def graph(self, family, ranks):
        name = f"{family}.{ranks}.pwg"
        if Path(self.path(name)).exists():
            return self.path(name)
        text = Path(self.make(name, "generate", *options_of(family), "--tp", str(ranks))).read_text()
        return self.file(name, divided(text))

    def arguments(self, family, ranks, *more):
        return ["run", self.graph(family, ranks), "-r", "llm", "-p", "o2", "-D", f"tp={ranks}", "--tokens", TOKENS, "--sizes", "1,2,4,8,16", *more]

    def saved(self, path, rank):
        return Path(path.replace("{rank}", str(rank))).read_bytes()


@unittest.skipUnless(shutil.which("mpirun") and (BIN / "libpw_mpi.so").exists(), "there is no MPI")
class Mpi(RanksTest):
    def mpi(self, *programs, code=0):
        done = subprocess.run(launched(*programs), capture_output=True, text=True, timeout=300, check=False, env=environment())
        if code is None:
            self.assertNotEqual(done.returncode, 0, done.stderr)
        else:
            self.assertEqual(done.returncode, code, done.stderr)
        return done

    def same_bits(self, family, ranks, *more):
        """Every rank's outputs, by processes and in one process."""
        here, there = self.path("here.{rank}.st"), self.path("there.{rank}.st")
        self.pwr(*self.arguments(family, ranks, *more), "--ranks", str(ranks), "--save", here)
        self.mpi((ranks, self.arguments(family, ranks, *more, "--ranks", "mpi", "--save", there)))
        for rank in range(ranks):
            self.assertGreater(len(self.saved(here, rank)), 57 * 128 * 2)
            self.assertEqual(self.saved(here, rank), self.saved(there, rank), f"rank {rank} of {ranks}: {family} {more}")

    def test_two_processes_have_the_bits_of_one(self):
        for family in FAMILIES:
            self.same_bits(family, 2)
            self.same_bits(family, 2, "-D", "sp_tokens=4")

    def test_four_processes_have_the_bits_of_one(self):
        for family in FAMILIES:
            self.same_bits(family, 4, "-D", "sp_tokens=4", "--backend", "interpreter" if family == "llama" else "eager")

    def test_eight_processes_have_the_bits_of_one(self):
        self.same_bits("llama", 8, "-D", "sp_tokens=8")
        self.same_bits("llama-fp8", 8)

    def test_models_have_the_bits_of_one_process(self):
        """Each with and without sequence parallelism; all of them at all numbers of ranks where PW_ALL_MODELS is set."""
        if os.environ.get("PW_ALL_MODELS"):
            tried = [(family, ranks) for family in MODELS for ranks in (2, 4, 8)]
        else:
            tried = [("qwen2", 2), ("deepseek-v3", 2), ("gpt-oss", 4), ("gemma3", 4)]
        for family, ranks in tried:
            with self.subTest(family, ranks=ranks):
                began = time.monotonic()
                self.same_bits(family, ranks)
                self.same_bits(family, ranks, "-D", "sp_tokens=4")
                print(f"{family} on {ranks} ranks: the bits of one process, in {time.monotonic() - began:.0f} s", flush=True)

    def test_experts_share_rows_that_ranks_do_not_divide(self):
        for ranks in (2, 4):
            graph = self.file(f"experts.{ranks}.pwg", SHARED_ROWS.replace("RANKS", str(ranks)).replace("weight ", ""))
            args = ["run", graph, "-r", "llm", "-p", "o2", "-D", f"tp={ranks}", "-D", "sp_tokens=4", "--tokens", TOKENS, "--sizes", "8"]
            here, there = self.path("experts.here.{rank}.st"), self.path("experts.there.{rank}.st")
            done = self.pwr(*args, "--ranks", str(ranks), "--save", here, "--check")
            self.assertIn("all outputs of all steps pass the check", done.stderr)
            self.mpi((ranks, [*args, "--ranks", "mpi", "--save", there]))
            for rank in range(ranks):
                self.assertEqual(self.saved(here, rank), self.saved(there, rank), f"rank {rank} of {ranks}")
            stats = self.pwr("opt", graph, *args[2:10], "--stats", "--format", "csv").stdout
            for rule in ("sp_norm_padded", "sp_gathered_norm"):
                self.assertRegex(stats, rf",{rule},[12],")

    def test_one_op_says_how_many_ranks_a_group_has(self):
        """It is in another piece than the group's other ops, and may have no reader."""
        text = """graph g {
  symbol n in 1..64 tokens
  in x: f32[n, 4]
  y = all_reduce(x){group = "tp"}
  e = neg(y)
  z = all_gather(e){dim = 0, world = 2, group = "tp"}
  s = amax(z){dim = 0}
  out e, s
}
"""
        for name, graph in (("read", text), ("unread", text.replace("out e, s", "out e"))):
            args = ["run", self.file(f"{name}.pwg", graph), "--tokens", "3"]
            wanted, got = self.path(name + ".wanted.{rank}.st"), self.path(name + ".got.{rank}.st")
            self.pwr(*args, "--backend", "interpreter", "--ranks", "4", "--save", wanted)
            self.assertNotEqual(self.saved(wanted, 0), self.saved(wanted, 2))
            for backend in (["cpu"], ["cuda", "--driver", "host"]):
                with self.subTest(name, backend=backend[0]):
                    self.mpi((4, [*args, "--backend", *backend, "--strict", "--ranks", "mpi", "--save", got]))
                    for rank in range(4):
                        self.assertEqual(self.saved(wanted, rank), self.saved(got, rank), f"rank {rank}")
            # The graph before rewriting reports it, even if a pass removes the cause.
            messages = self.pwr(*args, "-p", "dce", "--ranks", "4", "--save", got, "--check").stderr
            self.assertEqual("PW1117" in messages, name == "unread", messages)
            for rank in range(4):
                self.assertEqual(self.saved(wanted, rank), self.saved(got, rank), f"rank {rank}")

    def test_a_captured_backend_has_the_bits_of_its_own_kernels(self):
        """Collectives run between captured pieces; the same kernels without capture are the oracle."""
        args = self.arguments("llama", 2, "--backend", "cuda", "--driver", "host", "--ranks", "mpi")
        captured, launches = self.path("captured.{rank}.st"), self.path("launches.{rank}.st")
        messages = self.mpi((2, [*args, "--save", captured, "--check"])).stderr
        self.assertRegex(messages, r"[1-9]\d* of \d+ pieces captured")
        self.mpi((2, [*args, "--mode", "none", "--save", launches]))
        for rank in range(2):
            self.assertEqual(self.saved(captured, rank), self.saved(launches, rank))

    def test_each_rank_is_checked(self):
        done = self.mpi((2, self.arguments("llama", 2, "--ranks", "mpi", "--check")))
        self.assertIn("all outputs of all steps pass the check", done.stderr)
        self.assertEqual(done.stderr.count("pass the check"), 1)

    # ---- plans that would hang

    def refused(self, first, second, *parts):
        began = time.monotonic()
        messages = self.mpi((1, first), (1, second), code=None).stderr
        self.assertEqual(messages.count("error[PW1291]"), 1, messages)
        for part in parts:
            self.assertIn(part, messages)
        self.assertLess(time.monotonic() - began, 250)

    def test_a_sum_that_is_fused_on_one_rank_only(self):
        rules = self.file("fused.pwr", 'use "llm.pwr"\npipeline fused_sums { clean norm allreduce }\npipeline apart { clean norm }\n')
        graph = self.graph("llama", 2)
        args = [["run", graph, "-r", rules, "-p", p, "--tokens", "3", "--ranks", "mpi"] for p in ("fused_sums", "apart")]
        self.refused(*args, "rank 0 issues fused_all_reduce", "rank 1 all_reduce over `tp`")

    def test_a_range_in_which_one_rank_fuses(self):
        """Only some sizes differ, and the step that runs has another size."""
        text = """use "llm.pwr"
rule small_sum {
  h = all_reduce(x: T[n, d]){group}
  y = rms_norm(h, w){eps}
  where n <= LIMIT
  =>
  y, h = fused_all_reduce_rms_norm(x, w){group, eps}
}
pipeline ranged { for tokens in ranges(LIMIT) { greedy { small_sum } } }
"""
        rules = [self.file(f"r{limit}.pwr", text.replace("LIMIT", str(limit))) for limit in (32, 40)]
        args = [["run", self.graph("llama", 2), "-r", r, "-p", "ranged", "--tokens", "3", "--ranks", "mpi"] for r in rules]
        self.refused(*args, "at 33 tokens the ranks diverge at collective 1", "rank 0 issues all_reduce", "rank 1 fused_all_reduce_rms_norm")

    def test_a_size_that_differs(self):
        """One rank sums its embedding in f32."""
        plain = "embedded = all_reduce(embed_part)"
        wide = "wide = cast(embed_part){dtype = f32}\n  total = all_reduce(wide)"
        text = Path(self.graph("llama", 2)).read_text().replace(plain, wide)
        text = text.replace("  l0_attn_normed", "  embedded = cast(total){dtype = bf16}\n  l0_attn_normed", 1)
        args = [["run", graph, "--tokens", "1", "--ranks", "mpi"] for graph in (self.graph("llama", 2), self.file("wide.pwg", text))]
        self.refused(*args, "rank 0 issues all_reduce over `tp` of 512 bytes", "rank 1 all_reduce over `tp` of 1024 bytes")

    def test_a_batch_that_is_padded_on_one_rank(self):
        args = self.arguments("llama", 2, "--ranks", "mpi")
        self.refused(args, [*args, "--no-pad"], "at 3 tokens the ranks diverge at collective 1", "of 2048 bytes", "of 1536 bytes")

    def test_steps_that_differ(self):
        args = self.arguments("llama", 2, "--ranks", "mpi")
        other = [*args]
        other[other.index(TOKENS)] = "1,7,15,34"
        self.refused(args, other, "in step 4 the ranks diverge at collective 1")

    # ---- failure

    def killed(self, seed, stop=signal.SIGKILL):
        """One of four ranks at some point of a long run."""
        draw = random.Random(seed)
        args = self.arguments("llama", 4, "--ranks", "mpi", "--progress", "always", "--steps", self.file("long.steps", "0:16 0.\n" * 20000))
        del args[args.index("--tokens") : args.index("--tokens") + 2]
        run = subprocess.Popen(
            launched((4, args)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
        )
        messages = []
        reader = threading.Thread(target=lambda: messages.extend(run.stderr))
        reader.start()
        try:
            end = time.monotonic() + 600
            while not any("running" in line for line in messages) and time.monotonic() < end and run.poll() is None:
                time.sleep(0.02)
            time.sleep(draw.uniform(0.1, 1.5))
            ranks = children_of(run.pid)
            self.assertEqual(len(ranks), 4, messages)
            began = time.monotonic()
            os.kill(draw.choice(ranks), stop)
            run.wait(timeout=300)
            taken = time.monotonic() - began
            reader.join()
            text = "".join(messages)
            self.assertLess(taken, GONE, text)
            self.assertFalse([pid for pid in ranks if Path(f"/proc/{pid}/stat").exists() and pid in children_of(run.pid)])
            self.assertNotEqual(run.returncode, 0)
            notice = [line for line in messages if "PW1290" in line]
            self.assertEqual(len(notice), 1, text)
            self.assertRegex(notice[0], r"rank [0-3] is lost|rank [0-3] has not responded")
            self.assertRegex(notice[0], r"the last collective is \w+ at node \S+ \(group tp, \d+ bytes\)")
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
            reader.join()
            run.stderr.close()

    def test_a_rank_that_dies_ends_all(self):
        for seed in range(int(os.environ.get("PW_KILLED", "5"))):
            with self.subTest(seed=seed):
                self.killed(seed)

    def test_a_rank_that_hangs_ends_all(self):
        self.killed(17, signal.SIGSTOP)


@unittest.skipUnless("PW_RECORDING_NCCL" in os.environ, "PW_RECORDING_NCCL names no library")
class Nccl(RanksTest):
    """A library in NCCL's place, and the variables that torchrun sets."""

    def started(self, rank, args, **variables):
        own = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)}
        own |= {"PWR_NCCL": os.environ["PW_RECORDING_NCCL"], "PW_NCCL_MEMORY": self.path("memory"), "PW_NCCL_LOG": self.path("log")}
        return subprocess.Popen(
            [BIN / "pwr", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**environment(), **own, **variables}
        )

    def setUp(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1] - 1  # ranks meet at the next

    def test_two_ranks_have_the_bits_of_one_process(self):
        here, there = self.path("here.{rank}.st"), self.path("there.{rank}.st")
        args = self.arguments("llama", 2, "-D", "sp_tokens=4")
        self.pwr(*args, "--ranks", "2", "--save", here)
        runs = [self.started(rank, [*args, "--driver", "host", "--ranks", "nccl", "--save", there]) for rank in range(2)]
        for run in runs:
            messages = run.communicate(timeout=300)[1]
            self.assertEqual(run.returncode, 0, messages)
        for rank in range(2):
            self.assertEqual(self.saved(here, rank), self.saved(there, rank))
            calls = [line.split() for line in Path(self.path(f"log.{rank}")).read_text().splitlines()]
            self.assertEqual((calls[0], calls[-1]), (["init", "2", str(rank)], ["destroy", "0", str(rank)]))
            sent = [(size, peer) for what, size, peer in calls if what == "send"]
            self.assertEqual(sent, [(size, peer) for what, size, peer in calls if what == "receive"])
            # A sum of 7 tokens that are padded to 8: each rank gets half of [8, 256] in f32 or bf16.
            self.assertTrue({("2048", "0"), ("2048", "1")} <= set(sent) or {("4096", "0"), ("4096", "1")} <= set(sent), set(sent))

    def test_what_the_launcher_did_not_say(self):
        for name, value, code, messages in (
            ("RANK", "", 5, "RANK is not set"),
            ("RANK", "2", 5, "not a number from 0 to 1"),
            ("PWR_NCCL", "/nonexistent.so", 5, "NCCL is unavailable"),
        ):
            run = self.started(0, [*self.arguments("llama", 2), "--driver", "host", "--ranks", "nccl"], **{name: value})
            self.assertIn(messages, run.communicate(timeout=600)[1])
            self.assertEqual(run.returncode, code)


class Counts(RanksTest):
    def test_sequence_parallel_norms_and_products_with_collectives(self):
        """Expects, for n layers, 2n + 1 norms of parts and 4n products whose rows are gathered from parts or scattered to parts."""
        for layers in (2, 6, 32):
            plain = self.make(f"n{layers}.pwg", "generate", "llama", "--layers", str(layers), "--tp", "2")
            graph = self.file(f"n{layers}.pwg", divided(Path(plain).read_text()))
            done = self.pwr("opt", graph, "-r", "llm", "-p", "o2", "-D", "tp=2", "-D", "sp_tokens=16", "--stats", "--format", "csv")
            counts = {}
            for line in done.stdout.splitlines():
                cells = line.split(",")
                if not line.startswith("otherwise") and len(cells) > 3 and cells[3].isdigit():
                    counts[cells[2]] = counts.get(cells[2], 0) + int(cells[3])
            norms, products = (counts[a] + counts[b] for a, b in (("sp_first_norm", "sp_norm"), ("gemm_reduce_scatter", "all_gather_gemm")))
            print(f"llama, {layers} layers, tp 2: {norms} sequence-parallel norms, {products} products with collectives")
            self.assertEqual((norms, products), (2 * layers + 1, 4 * layers))


class WithoutMpi(ProgramTest):
    def test_absent_mpi_is_said(self):
        graph = self.file("g.pwg", "graph g { symbol n in 1..8 tokens\n in x: f32[n]\n y = relu(x)\n out y }\n")
        done = subprocess.run(
            [BIN / "pwr", "run", graph, "--ranks", "mpi"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PWR_MPI": "/nonexistent.so"},
        )
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("error[PW1201]: MPI is unavailable", done.stderr)

    def test_files_of_one_rank_are_refused_for_several(self):
        graph = self.file("g.pwg", "graph g { symbol n in 1..8 tokens\n in x: f32[n]\n y = relu(x)\n out y }\n")
        for option in ("--save", "--weights"):
            self.assertIn("{rank}", self.pwr("run", graph, "--ranks", "2", option, self.path("x"), code=5).stderr)


if __name__ == "__main__":
    unittest.main()
