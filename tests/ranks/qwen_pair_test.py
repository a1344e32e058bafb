#!/usr/bin/python3
"""One layer of Qwen2-1.5B on two ranks, each with its own graph, with sequence parallelism: both compute the same bits, and --check accepts them
against a single device. Skipped without the dumps or MPI."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from ranks_test import BIN, OPTIONS, environment  # noqa: E402

DATA = Path(os.environ.get("PW_SHARED_DATA") or "../shared/data") / "fx"
ONE = DATA / "qwen2-1.5b.tp1.layer1.fx.txt"
RANKS = [DATA / "qwen2-1.5b.tp2.rank0.layer1.fx.txt", DATA / "pairs/qwen2-1.5b.tp2.rank1.layer1.fx.txt"]
TOKENS, HIDDEN, FFN, VOCABULARY = 64, 1536, 8960, 151936
SYMBOL = ["--symbol", "n=arg0_1.0,arg6_1.0"]
ALIKE = "arg0_1,arg2_1,arg5_1,arg6_1,arg8_1,arg11_1"  # ids, norms' weights, positions and their table


def bf16(values):
    """Rounded to nearest, as bits."""
    bits = numpy.asarray(values, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)


def drawn():
    """The inputs of one device, but for its table, of which only the rows of some tokens hold something."""
    random = numpy.random.default_rng(7)
    matrix = lambda rows, columns: bf16(random.standard_normal((rows, columns), numpy.float32) / columns**0.5)  # noqa: E731
    gain = lambda: bf16(1 + 0.1 * random.standard_normal(HIDDEN, numpy.float32))  # noqa: E731
    ids = random.integers(0, VOCABULARY, TOKENS)
    rows = {int(i): bf16(random.standard_normal(HIDDEN, numpy.float32)) for i in ids}
    weights = {"arg0_1": ids.astype(numpy.int64), "arg2_1": gain(), "arg3_1": bf16(0.02 * random.standard_normal(2048, numpy.float32))}
    weights |= {"arg4_1": matrix(2048, HIDDEN), "arg7_1": matrix(HIDDEN, HIDDEN), "arg8_1": gain(), "arg9_1": matrix(2 * FFN, HIDDEN)}
    return weights | {"arg10_1": matrix(HIDDEN, FFN), "arg11_1": gain()}, rows


def part(weights, rank):
    """Returns one rank's half: heads of q, k and v each, halves of gate and of up, columns of the weights that parts are multiplied by."""
    half = lambda x, axis=0: numpy.split(x, 2, axis)[rank]  # noqa: E731
    heads = lambda x: numpy.concatenate([half(y) for y in numpy.split(x, [1536, 1792])])  # noqa: E731
    gate_up = numpy.concatenate([half(x) for x in numpy.split(weights["arg9_1"], 2)])
    own = {"arg3_1": heads(weights["arg3_1"]), "arg4_1": heads(weights["arg4_1"]), "arg9_1": gate_up}
    return weights | own | {name: half(weights[name], 1) for name in ("arg7_1", "arg10_1")}


def write(path, weights, rows, begin, end):
    """A safetensors file; what the table's rows from `begin` to `end` do not hold is a hole of the file."""
    header, at = {"arg1_1": {"dtype": "BF16", "shape": [end - begin, HIDDEN], "data_offsets": [0, (end - begin) * HIDDEN * 2]}}, (
        end - begin
    ) * HIDDEN * 2
    for name, x in weights.items():
        dtype = "I64" if x.dtype == numpy.int64 else "BF16"
        header[name] = {"dtype": dtype, "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        data = file.tell()
        for row, values in rows.items():
            if begin <= row < end:
                file.seek(data + (row - begin) * HIDDEN * 2)
                file.write(values.tobytes())
        file.seek(data + (end - begin) * HIDDEN * 2)
        for x in weights.values():
            file.write(numpy.ascontiguousarray(x).tobytes())


def called(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, f"{args[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def main():
    if not all(path.exists() for path in (ONE, *RANKS)):
        print(f"SKIPPED: {DATA} lacks the dumps; set PW_SHARED_DATA to the folder with fx/")
        return 77
    if not shutil.which("mpirun") or not (BIN / "libpw_mpi.so").exists():
        print("SKIPPED: there is no MPI")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: str(Path(folder, name))  # noqa: E731
        weights, rows = drawn()
        write(at("one.st"), weights, rows, 0, VOCABULARY)
        called(BIN / "pwr", "run", ONE, *SYMBOL, "--weights", at("one.st"), "--tokens", TOKENS, "--save", at("one.out"))
        for rank, dump in enumerate(RANKS):
            write(at(f"part.{rank}.st"), part(weights, rank), rows, rank * VOCABULARY // 2, (rank + 1) * VOCABULARY // 2)
            called(BIN / "pwr", "import", dump, *SYMBOL, "--replicated", ALIKE, "-o", at(f"rank{rank}.pwg"))
        stats = called(BIN / "pwr", "opt", at("rank0.pwg"), "-r", "llm", "-p", "o2", "-D", "tp=2", "-D", "sp_tokens=16", "--stats")
        for rule, matches in (("sp_first_norm", 1), ("sp_norm", 2), ("gemm_reduce_scatter", 2)):
            assert re.search(rf"^ +\w+ +{rule} +{matches} ", stats, re.M), f"{rule} does not match {matches} times:\n{stats}"
        run = ["-r", "llm", "-p", "o2", "-D", "tp=2", "-D", "sp_tokens=16", "--weights", at("part.{rank}.st"), "--tokens", TOKENS]
        messages = called(
            "mpirun",
            *OPTIONS,
            "-n",
            "2",
            BIN / "pwr",
            "run",
            at("rank{rank}.pwg"),
            *run,
            "--ranks",
            "mpi",
            "--save",
            at("out.{rank}"),
            "--expect",
            at("one.out"),
        )
        outputs = [Path(at(f"out.{rank}")).read_bytes() for rank in range(2)]
        assert outputs[0] == outputs[1] and len(outputs[0]) > TOKENS * HIDDEN * 2, "the ranks' bits differ"
        print(messages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
