#!/usr/bin/env python3
"""Time that a call on a device costs the processor: graphs of 1, 10, and 100 kernels, and one with 300 weights, whose launches do nothing.

    launches.py [--calls N] [--output FILE]

A small library takes the place of libcuda; kernels are compiled with NVRTC. The baselines in the same run: Inductor's generated wrapper and PyTorch's ops
(make_boxed_func) on tensors of 8 × 8 in CPU memory, which also do the work. Needs PyTorch, NVRTC, and a C++ compiler.

"captured" is the option "capture": "piecewise"; the emulator of CUDA graphs repeats the launches. "its call" and "its replay" leave out what Dynamo and AOT
autograd do before and after them.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

SIZE = 8
EMULATED = {"backend": "cuda", "driver": "host"}
LIBRARY = """
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* d, int) { *d = 0; return 0; }
int cuDeviceGetName(char* name, int, int) { std::strcpy(name, "nothing"); return 0; }
int cuDeviceGetAttribute(int* v, int a, int) { *v = a == 75 ? 9 : 0; return 0; }
int cuMemAlloc_v2(std::uint64_t* a, std::size_t n) { *a = (std::uint64_t)std::aligned_alloc(256, (n + 255) / 256 * 256); return 0; }
int cuMemFree_v2(std::uint64_t a) { std::free((void*)a); return 0; }
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) { return 0; }
%s
}
"""
OTHERS = """cuGetErrorName cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuMemGetInfo_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2
cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuStreamCreate cuStreamSynchronize cuStreamDestroy_v2 cuStreamBeginCapture_v2 cuStreamEndCapture cuModuleLoadData
cuModuleUnload cuModuleGetFunction cuFuncSetAttribute cuGraphCreate cuGraphDestroy cuGraphAddKernelNode_v2 cuGraphAddMemcpyNode cuGraphAddChildGraphNode
cuGraphInstantiateWithFlags cuGraphExecUpdate_v2 cuGraphUpload cuGraphLaunch cuGraphExecDestroy""".split()


def library(folder):
    """Returns the path of a driver whose functions do nothing."""
    source, path = Path(folder, "nothing.cpp"), Path(folder, "libnothing.so")
    source.write_text(LIBRARY % "\n".join(f"int {name}() {{ return 0; }}" for name in OTHERS))
    subprocess.run([os.environ.get("CXX", "c++"), "-O1", "-w", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


def model(kernels):
    """Returns a function whose softmaxes over alternating dims cannot be fused to fewer kernels."""

    def f(x, w):
        for _ in range(kernels):
            x = torch.softmax(x, 0).t()
        return x + w

    return f


class Weighted(torch.nn.Module):
    """A product with many weights."""

    def __init__(self, weights):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.randn(SIZE)) for _ in range(weights))

    def forward(self, x, w):
        for weight in self.weights:
            x = x * weight
        return x + w


@contextlib.contextmanager
def graphs(seen):
    """Adds the function of each compiled graph to a list, with the arguments of its last call."""
    from piecewise.pytorch.taking import Taking

    take = Taking.take

    def noted(taking, module, static=()):
        call, last = take(taking, module, static), [()]
        seen.append((call, last))

        def run(args):
            last[0] = tuple(args)
            return call(args)

        run._boxed_call = True
        return run

    Taking.take = noted
    try:
        yield
    finally:
        Taking.take = take


def microseconds(call, calls):
    """Returns the least mean of five rounds."""
    for _ in range(50):
        call()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--output", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    from piecewise import pytorch as front
    from piecewise.pytorch import devices

    torch.set_num_threads(1)
    lines = [
        "| launches | piecewise, µs a call | its call | captured | its replay | Inductor | PyTorch's ops | to Inductor |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.environ["PWR_CUDA_DRIVER"] = str(library(folder))
        front.taking.open_device = lambda options, place: devices.opened("cuda", 0)
        boxed = aot_autograd(fw_compiler=lambda module, _: make_boxed_func(module.forward))
        for function in (model(1), model(10), model(100), Weighted(300)):
            x, w = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
            times = {}
            for name, how in (
                ("piecewise", {"backend": "piecewise", "options": EMULATED}),
                ("captured", {"backend": "piecewise", "options": {**EMULATED, "capture": "piecewise"}}),
                ("inductor", {"backend": "inductor"}),
                ("boxed", {"backend": boxed}),
            ):
                torch._dynamo.reset()
                front.forget()
                call = torch.compile(function, dynamic=False, **how)
                seen = []
                with graphs(seen):
                    for _ in range(3):
                        call(x, w)
                if name == "piecewise":
                    (report,) = front.report(call)
                    launches = report.summary[0]
                times[name] = microseconds(lambda: call(x, w), arguments.calls)
                for inner, last in seen:
                    times[f"its {name}"] = microseconds(lambda: inner(list(last[0])), arguments.calls)
            own, replay = times["its piecewise"], times["its captured"]
            lines.append(
                f"| {launches} | {times['piecewise']:.1f} | {own:.1f} | {times['captured']:.1f} | {replay:.1f} | {times['inductor']:.1f} | {times['boxed']:.1f} |"
                f" {times['piecewise'] / times['inductor']:.2f} |"
            )
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
