#!/usr/bin/python3
"""Compares this project's kernels with those of vLLM's compiled extension, for the same functions and widths, without a device: registers, occupancy, and the
instructions issued for 16 bytes moved.

quality_peers.py LIBRARY.so [--pwr build/release/bin/pwr] > bench/results/quality.md

LIBRARY.so is vllm/_C_stable_libtorch.abi3.so of vLLM's wheel. cuobjdump ($CUOBJDUMP, or on PATH) disassembles both sides' machine code, and sass_walk.py
counts both sides' instructions, each kernel at its own launch.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import sass_walk

WIDTHS = (2048, 4096, 8192, 16384)
TOKENS = 4096
BF16, FP8 = "c10::BFloat16", "c10::Float8_e4m3fn"
# Per multiprocessor: threads, blocks, KiB of shared memory (the table of compute capabilities in NVIDIA's CUDA programming guide).
MACHINES = {"sm_80": (2048, 32, 164), "sm_90": (2048, 32, 228), "sm_100": (2048, 32, 228), "sm_120": (1536, 24, 100)}
MOST = 10**9
AT_MOST = 1.1  # multiple of the other's instructions
POINTER = (8, 0x7F0000000000)
NULL = (8, 0)


def long(value):
    return (8, value)


def word(value):
    return (4, value)


def norm_blocks(width):
    """Returns the block sizes for a token, from 256 threads up to 1024; the one that issues the least is used."""
    return [(min(width // 8, threads),) for threads in (256, 512, 1024)]


def peers(width):
    """Returns by function: the prefix of the kernel's name, required parts of it, blocks to try, blocks per token, parameters."""
    p, heads = POINTER, width // 128
    rows = [word(TOKENS), word(width)]
    norms = norm_blocks(width)
    dynamic = [p, p, p, p, NULL, word(0), word(width), word(width)]
    activation = [p, p, word(width), word(0), word(0), word(0)]
    return {
        "rms_norm": (f"rms_norm_kernel<{BF16}, 8, 2, true>", "", norms, 1, [p, p, long(width), *[long(0)] * 4, p, long(1), word(0), *rows]),
        "rms_norm_fp8_tensor": (
            f"rms_norm_static_fp8_quant_kernel<{BF16}, {FP8}, 8>",
            "",
            norms,
            1,
            [p, p, word(width), p, p, word(0), *rows],
        ),
        "rms_norm_fp8_token": (f"rms_norm_dynamic_per_token_quant_kernel<{BF16}, {FP8}, false>", "", norms, 1, [*dynamic, p]),
        "rms_norm_fp8_group": (f"rms_norm_per_block_quant_kernel<{BF16}, {FP8}, false, false, 128>", "", norms, 1, [*dynamic, p, long(1)]),
        "fused_add_rms_norm": (f"fused_add_rms_norm_kernel<{BF16}, 8, true>", "", norms, 1, [p, long(width), p, p, word(0), *rows, long(1)]),
        "fused_add_rms_norm_fp8_tensor": (
            f"fused_add_rms_norm_static_fp8_quant_kernel<{BF16}, 8, {FP8}>",
            "",
            norms,
            1,
            [p, p, word(width), p, p, p, word(0), *rows],
        ),
        "fused_add_rms_norm_fp8_token": (f"rms_norm_dynamic_per_token_quant_kernel<{BF16}, {FP8}, true>", "", norms, 1, [*dynamic, p]),
        "fused_add_rms_norm_fp8_group": (f"rms_norm_per_block_quant_kernel<{BF16}, {FP8}, true, false, 128>", "", norms, 1, [*dynamic, p, long(1)]),
        # The gate first, vectorised, no clamp.
        "silu_and_mul": (
            f"act_and_mul_kernel<{BF16}, __nv_bfloat162, &({BF16} vllm::silu_kernel<",
            "true, true, false, ",
            [(min(width // vector, 1024),) for vector in (8, 16)],
            1,
            activation,
        ),
        "silu_and_mul_fp8_tensor": (
            f"act_and_mul_quant_kernel<{BF16}, &({BF16} vllm::silu_kernel<",
            "",
            [(512,)],
            1,
            [p, p, p, word(width), (1, 0)],
        ),
        "silu_and_mul_fp8_group": (
            f"silu_and_mul_per_block_quant_kernel<{BF16}, {FP8}, false, 128>",
            "",
            [(128,)],
            heads,
            [p, p, p, NULL, word(width)],
        ),
        "qk_norm_rope": (
            f"fusedQKNormRopeKernel<{BF16}, {BF16}, 128, false>",
            "",
            [(256,)],
            heads * 3 / 4 / 8,
            [p, word(heads // 2), word(heads // 4), word(heads // 4), word(0), p, p, p, p, word(TOKENS), word(128)],
        ),
        "rope": (
            f"rotary_embedding_kernel<{BF16}, {BF16}, true>",
            "",
            [(min(heads * 64, 512),)],
            1,
            [p, p, p, p, word(128), long(width), long(width // 4), long(128), word(heads), word(heads // 4), word(128), long(0), (1, 0)],
        ),
    }


def cuobjdump(*options):
    program = os.environ.get("CUOBJDUMP", "cuobjdump")
    return subprocess.run([program, *options], capture_output=True, text=True, check=True).stdout


@lru_cache(maxsize=None)
def kernels_of(library, arch):
    """Returns (name, symbol, registers, shared bytes) of every kernel of the library."""
    messages = cuobjdump("-arch", arch, "-res-usage", library)
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:\d+ SHARED:(\d+)", messages)
    names = subprocess.run(["c++filt"], input="\n".join(symbol for symbol, *_ in found), capture_output=True, text=True, check=True).stdout
    return [(name, symbol, int(registers), int(shared)) for name, (symbol, registers, shared) in zip(names.splitlines(), found)]


@lru_cache(maxsize=None)
def machine_code(library, arch, symbol):
    return cuobjdump("-arch", arch, "-sass", "-fun", symbol, library)


def occupancy(arch, registers, shared, threads):
    """Returns the fraction of a multiprocessor's threads, by the rules of the toolkit's cuda_occupancy.h."""
    most, blocks, room = MACHINES[arch]
    of_warp = -(-registers * 32 // 256) * 256
    warps = -(-threads // 32)
    all_shared = -(-(shared + (1024 if arch == "sm_80" else 0)) // 128) * 128  # from sm_90 on the compiler's count includes the system's own
    resident = min(blocks, most // (32 * warps), 16384 // of_warp * 4 // warps, room * 1024 // max(all_shared, 1024))
    return resident * 32 * warps / most


def theirs(library, arch, width, function):
    """Returns the fitting variant and block size that issues the fewest instructions per token."""
    if function not in peers(width):
        return None
    prefix, part, blocks, a_token, params = peers(width)[function]
    best = None
    for name, symbol, registers, shared in kernels_of(library, arch):
        if not re.search(r"(^|[ :])" + re.escape(prefix), name) or part not in name or registers <= 8:
            continue
        for block in blocks:
            grid = (TOKENS, int(a_token)) if a_token == int(a_token) else (TOKENS * 8, 1)
            walk = sass_walk.walk_block(machine_code(library, arch, symbol), arch, block, grid, params)
            if walk.issued < block[0] and not walk.lost:  # an empty variant
                continue
            found = {
                "registers": registers,
                "shared_bytes": shared,
                "threads": block[0],
                "occupancy": occupancy(arch, registers, shared, block[0]),
                "issued": None if walk.lost else walk.issued * a_token,
            }
            if best is None or (found["issued"] or MOST) < (best["issued"] or MOST):
                best = found
    return best


def ours(row, folder):
    text = cuobjdump("-sass", f"{folder}/{row['function']}-{row['width']}-{row['arch']}.cubin")
    grid = (TOKENS // row["rows_per_block"], row["column_blocks"])
    issued = 0
    for part in range(row["column_blocks"]):
        issued += sass_walk.walk_block(text, row["arch"], (row["threads"],), grid, [long(TOKENS)] * 12, (0, part)).issued
    return {**row, "issued": issued / row["rows_per_block"]}


def moved(row):
    """Returns the groups of 16 bytes that a token's row must move, excluding data that all rows share."""
    width, function = row["width"], row["function"]
    narrow = "fp8" in function
    reads = 2 * width * (2 if function.startswith(("fused_add", "silu")) else 1)
    writes = (1 if narrow else 2) * width + (2 * width if function.startswith("fused_add") else 0)
    if function == "rope":
        reads, writes = 2 * width * 5 // 4, 2 * width * 5 // 4
    if function == "qk_norm_rope":  # theirs works in place, and does not touch the values
        reads, writes = 2 * width * 3 // 4, 2 * width * 3 // 4
    return (reads + writes) / 16


def measured(pwr, library):
    """Returns (ours, theirs or None) by function, architecture and width."""
    with tempfile.TemporaryDirectory() as folder:
        archs = ",".join(MACHINES)
        command = [pwr, "compile", "--quality", "--arch", archs, "--widths", ",".join(map(str, WIDTHS)), "--dump", folder, "--format", "json"]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for row in answer["kernels"]:
            yield ours(row, folder), theirs(library, row["arch"], row["width"], row["function"])
        yield answer["nvrtc"], None


def why_more_registers(mine):
    """Returns what our kernel keeps that a loop over the row does not."""
    if mine["function"] == "qk_norm_rope":
        return "both halves of a head, of its weights and of the angles, 8 columns each, are 24 registers"
    if mine["function"] == "rope":
        return "both halves of a head and of the angles, 8 columns each, and 64-bit addresses; 32 would spill on this architecture"
    if mine["threads"] == 1024 and mine["arch"] == "sm_120" and mine["registers"] <= 42:
        return "a multiprocessor of 1536 threads has room for one block of 1024"
    return f"{-(-mine['width'] // 8 // mine['threads'])} groups of 8 columns of a thread stay in registers, and 32 would spill on this architecture"


def why_more_instructions(mine):
    if mine["function"] == "silu_and_mul_fp8_tensor":
        return "the narrow type by 8 columns a thread, theirs by one"
    return "groups of 256 threads take turns in the reduction, and each thread has the reduction's fixed part for 16 columns; theirs loops over more"


def verdict(function, mine, other):
    """Returns where ours is worse; empty if nowhere."""
    short = []
    if other is None:
        return "no counterpart"
    if mine["registers"] > other["registers"] and mine["occupancy"] < other["occupancy"] - 0.005:
        short.append(f"registers and occupancy: {why_more_registers(mine)}")
    if other["issued"] is None:
        short.append("its instructions are not counted: the walk does not know how long a loop of theirs is")
    elif mine["issued"] > AT_MOST * other["issued"]:
        short.append(f"instructions: {why_more_instructions(mine)}")
    return ", ".join(short)


def without_lost(rows):
    """Drops a count that hardly grows with the row: its walk left a loop too early."""
    counts = {}
    for mine, other in rows:
        if other and other["issued"] is not None:
            counts.setdefault((mine["function"], mine["arch"]), []).append(other["issued"])
    lost = {key for key, issued in counts.items() if len(issued) > 1 and max(issued) < 2 * min(issued)}
    return [(m, {**o, "issued": None} if o and (m["function"], m["arch"]) in lost else o) for m, o in rows]


def print_tables(rows, nvrtc, library):
    rows = without_lost(rows)
    compared = [(m, o) for m, o in rows if o]
    counted = [(m, o) for m, o in compared if o["issued"] is not None]
    names = [verdict(m["function"], m, o) for m, o in compared]
    print("# Kernels compared with vLLM's\n")
    print(
        f"bf16 rows of {', '.join(map(str, WIDTHS))} columns. Ours: `pwr compile --quality` (NVRTC {nvrtc}). vLLM's: cuobjdump of `{Path(library).name}`, "
        "the variant and the block (of 256, 512 and 1024 threads where it chooses by the number of tokens) that issue the fewest instructions. No "
        "device was used.\n\n"
        "Instructions are those that the threads of all warps issue for a token, by `bench/sass_walk.py`: it walks through the machine code as the first "
        "thread of each warp, with loops as long as they are at this width, and takes no branch for special numbers. They are divided by the 16 bytes "
        "that a token must move (operands and results of its row; what rows share is left out). The walk has no latencies of instructions.\n\n"
        f"{len(compared)} rows have a counterpart, whose instructions are known in {len(counted)}. Instructions are at most {AT_MOST} times theirs in "
        f"{sum(m['issued'] <= AT_MOST * o['issued'] for m, o in counted)}; "
        f"registers or occupancy are equal or better in {sum('registers' not in n for n in names)}, occupancy in "
        f"{sum(m['occupancy'] >= o['occupancy'] - 0.005 for m, o in compared)}, registers in {sum(m['registers'] <= o['registers'] for m, o in compared)}.\n"
    )
    print("| function | width | arch | threads | vLLM | registers | vLLM | occupancy | vLLM | instructions / 16 bytes | vLLM | ratio | short |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for mine, other in rows:
        groups = moved(mine)
        cells = [mine["function"], mine["width"], mine["arch"], mine["threads"], other["threads"] if other else ""]
        cells += [mine["registers"], other["registers"] if other else ""]
        cells += [f"{mine['occupancy']:.0%}", f"{other['occupancy']:.0%}" if other else ""]
        cells += [f"{mine['issued'] * 32 / groups:.1f}"]
        known = other is not None and other["issued"] is not None
        cells += [f"{other['issued'] * 32 / groups:.1f}", f"{mine['issued'] / other['issued']:.2f}"] if known else ["", ""]
        print("| " + " | ".join(map(str, cells)) + f" | {verdict(mine['function'], mine, other)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBRARY.so")
    parser.add_argument("--pwr", default="build/release/bin/pwr")
    args = parser.parse_args()
    *rows, (nvrtc, _) = measured(args.pwr, args.library)
    print_tables(rows, nvrtc, args.library)


if __name__ == "__main__":
    main()
