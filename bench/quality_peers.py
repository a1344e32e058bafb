#!/usr/bin/python3
"""Registers and occupancy of this project's kernels beside those of vLLM's compiled extension, for the same functions.

quality_peers.py LIBRARY.so > bench/results/quality.md

LIBRARY.so is vllm/_C_stable_libtorch.abi3.so of vLLM's wheel. The other's figures are what cuobjdump ($CUOBJDUMP, or on PATH) reads in the library;
this project's are of the baseline in the tree, at a width of 4096."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

BASELINE = Path("tests/baselines/kernels.quality.json")
WIDTH = 4096
BLOCK = 256  # threads, as vLLM launches its norms for many tokens
BF16, FP8 = "c10::BFloat16", "c10::Float8_e4m3fn"
# What a kernel's name begins with, behind its namespace. None: the library has no kernel for the whole function.
PEERS = {
    "rms_norm": f"rms_norm_kernel<{BF16}, 8, 2, true>",
    "rms_norm_fp8_tensor": f"rms_norm_static_fp8_quant_kernel<{BF16}, {FP8}, 8>",
    "rms_norm_fp8_token": f"rms_norm_dynamic_per_token_quant_kernel<{BF16}, {FP8}, false>",
    "rms_norm_fp8_group": f"rms_norm_per_block_quant_kernel<{BF16}, {FP8}, false, false, 128>",
    "fused_add_rms_norm": f"fused_add_rms_norm_kernel<{BF16}, 8, true>",
    "fused_add_rms_norm_fp8_tensor": f"fused_add_rms_norm_static_fp8_quant_kernel<{BF16}, 8, {FP8}>",
    "fused_add_rms_norm_fp8_token": f"rms_norm_dynamic_per_token_quant_kernel<{BF16}, {FP8}, true>",
    "fused_add_rms_norm_fp8_group": f"rms_norm_per_block_quant_kernel<{BF16}, {FP8}, true, false, 128>",
    "silu_and_mul": f"act_and_mul_kernel<{BF16}, __nv_bfloat162, &({BF16} vllm::silu_kernel<{BF16}>({BF16} const&, float)), ",
    "silu_and_mul_fp8_tensor": f"act_and_mul_quant_kernel<{BF16}, &({BF16} vllm::silu_kernel<",
    "silu_and_mul_fp8_token": None,
    "silu_and_mul_fp8_group": f"silu_and_mul_per_block_quant_kernel<{BF16}, {FP8}, ",
    "qk_norm_rope": f"fusedQKNormRopeKernel<{BF16}, {BF16}, 128, false>",
    "rope": f"rotary_embedding_kernel<{BF16}, {BF16}, true>",
    "layer_norm": None,
    "softmax": None,
}
# Of a multiprocessor: threads, blocks, bytes of shared memory (the table of compute capabilities in NVIDIA's CUDA programming guide).
MACHINES = {"sm_80": (2048, 32, 164), "sm_90": (2048, 32, 228), "sm_100": (2048, 32, 228), "sm_120": (1536, 24, 100)}


def usage_of(library, arch):
    """(name, registers, stack, shared) of every kernel of the library."""
    program = os.environ.get("CUOBJDUMP", "cuobjdump")
    said = subprocess.run([program, "-arch", arch, "-res-usage", library], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", said)
    names = subprocess.run(["c++filt"], input="\n".join(name for name, *_ in found), capture_output=True, text=True, check=True).stdout.splitlines()
    return [(name, *map(int, numbers)) for name, (_, *numbers) in zip(names, found)]


def occupancy(arch, registers, shared, threads=BLOCK):
    """The share of a multiprocessor's threads, by the rules of the toolkit's cuda_occupancy.h."""
    most, blocks, room = MACHINES[arch]
    of_warp = -(-registers * 32 // 256) * 256
    warps = threads // 32
    resident = min(blocks, most // threads, 16384 // of_warp * 4 // warps, room * 1024 // max(shared, 1024))
    return resident * threads / most


def peer(kernels, prefix):
    """Of the variants whose names begin so, the one with the fewest registers that is no empty one."""
    mine = [k for k in kernels if re.search(r"(^|[ :])" + re.escape(prefix), k[0]) and k[1] > 8]
    return min(mine, key=lambda k: k[1:], default=None)


def why_more(function):
    """What our kernels of a function need registers for that a loop over the row does without."""
    if function.startswith("silu") or "rope" in function:
        return "8 columns of a thread are computed at once, and all are loaded before"
    return "the row stays in registers instead of being read again"


def verdict(function, ours, theirs, their_share):
    """Where ours falls short, with its reason."""
    if theirs is None:
        return "no counterpart"
    short = []
    if ours["registers"] > theirs[1]:
        short.append(f"{ours['registers'] - theirs[1]} registers more: {why_more(function)}")
    if ours["occupancy"] < their_share - 0.005:
        short.append("occupancy: follows from the registers")
    return "; ".join(short) or "no worse"


def main():
    library = sys.argv[1]
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    print("# Kernels beside vLLM's\n")
    print(
        f"bf16 rows of {WIDTH} columns. Ours: `{BASELINE}` (NVRTC {baseline['nvrtc']}), at the block it is launched with. vLLM's: cuobjdump of "
        f"`{Path(library).name}`; occupancy for blocks of {BLOCK} threads, the fewest registers of all variants that fit. No device was asked. "
        "Instructions per 16 bytes are not compared: vLLM's kernels loop over the row, ours are unrolled, and machine code does not say how often a "
        "loop runs.\n"
    )
    print("| function | arch | registers | vLLM | occupancy | vLLM | shared | vLLM | |\n|---|---|---:|---:|---:|---:|---:|---:|---|")
    for arch in MACHINES:
        kernels = usage_of(library, arch)
        rows = {r["function"]: r for r in baseline["kernels"] if r["width"] == WIDTH and r["arch"] == arch}
        for function, prefix in PEERS.items():
            ours, theirs = rows[function], prefix and peer(kernels, prefix)
            share = theirs and occupancy(arch, theirs[1], theirs[3] + (1024 if arch == "sm_80" else 0))
            other = (theirs[1], f"{share:.0%}", theirs[3]) if theirs else ("", "", "")
            cells = [function, arch, ours["registers"], other[0], f"{ours['occupancy']:.0%}", other[1], ours["shared_bytes"], other[2]]
            print("| " + " | ".join(map(str, cells)) + f" | {verdict(function, ours, theirs, share)} |")


if __name__ == "__main__":
    main()
