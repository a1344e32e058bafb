#!/usr/bin/env python3
"""One model, one graph: models imported from torch.export's text, a PT2 archive, ONNX, and torch.compile have the same named ops and the same layers.

    one_graph.py [NAME…]

Text, archive, and torch.compile must agree in all ops after import, except for UNLIKE, where PyTorch passes on different calls. Named ops are compared with
ONNX too, after import and after the pipeline o2. DIFFERENCES lists the information that an import path lacks.
Exit codes: 0 all agree, 1 something differs. Models of a missing package are skipped with a message.
"""
import argparse
import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import piecewise  # noqa: E402
from piecewise import pytorch as front  # noqa: E402

NAMED = ("silu", "gelu", "gelu_tanh", "sigmoid", "layer_norm", "rms_norm", "scaled_attention", "convolution", "amax", "exp")
STOCK = ("llama", "qwen3", "phi3", "gpt2", "mistral", "gemma", "timm_resnet18", "timm_mobilenetv3_small_050", "timm_regnetx_002")
# By door: the ops that it splits before the import can read them, after import and after o2.
DIFFERENCES = {
    "onnx": ({"rms_norm", "silu", "sigmoid", "scaled_attention", "amax", "exp"}, set()),  # the exporter splits them
}


# Ops that may differ between torch.compile and an archive: transformers makes a mask when one of these is exported and none when it is compiled, and AOT
# autograd restates the strides of a convolution's mean.
MASK = {"add", "cast", "constant", "expand", "ge", "iota", "reshape", "select"}
UNLIKE = {"bert": MASK, "vit": MASK, "t5": MASK, "timm_convnext_atto": {"aten.as_strided.default"}}


class Named(nn.Module):
    """A layer of every named activation and norm, called twice."""

    def __init__(self):
        super().__init__()
        self.rms, self.layer = nn.RMSNorm(16), nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        h = nn.functional.silu(self.up(self.rms(x)))
        h = self.down(nn.functional.gelu(h, approximate="tanh")) + x
        return nn.functional.gelu(self.layer(h)) + h.softmax(-1)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Named() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def stock(name):
    import stock as models  # needs transformers

    if name.startswith("timm_"):
        import timm  # noqa: F401
    return models.MODELS[name]()[:2]


def own():
    return Layers().eval(), (torch.randn(4, 16),)


def onnx_file(model, inputs, path):
    """Returns the path of the exported model; None, with a message, if PyTorch cannot export it."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            torch.onnx.export(model, inputs, str(path), dynamo=True, verbose=False)
    except Exception as why:  # noqa: B902 (whatever the exporter raises)
        reason = re.sub("\x1b.*?m", "", str(why)).strip().splitlines()[0]
        print(f"SKIPPED: ONNX: {type(why).__name__}: {reason[:100]}", file=sys.stderr)
        return None
    return path


def graphs_of(model, inputs, folder):
    """Returns the imported graphs of each door."""
    program = torch.export.export(model, inputs)
    (folder / "m.fx.txt").write_text(str(program))
    torch.export.save(program, folder / "m.pt2")
    out = {"dump": [piecewise.load(folder / "m.fx.txt")], "pt2": [piecewise.load(folder / "m.pt2")]}
    if path := onnx_file(model, inputs, folder / "m.onnx"):
        out["onnx"] = [piecewise.load(path)]
    torch._dynamo.reset()
    front.forget()
    with torch.no_grad():
        torch.compile(model, backend="piecewise", dynamic=False)(*inputs)
    out["compile"] = [part.imported for report in front.graphs() for part in report.parts]
    return out


def ops_of(graphs):
    return sum((Counter(graph.ops()) for graph in graphs), Counter())


def layers_of(graphs):
    """Returns the numbered modules of the groups: model.layers.0 of model.layers.0.mlp."""
    found = (re.match(r"(.*?\.)?\d+(?=\.|$)", node.group or "") for graph in graphs for node in graph.nodes)
    return {match[0] for match in found if match}


def differences(graphs, unlike=frozenset()):
    """Returns what differs from the archive, a line each; the counts of ops in `unlike` may differ in torch.compile."""
    ops = {door: ops_of(all_) for door, all_ in graphs.items()}
    after = {door: ops_of([graph.rewrite("llm", "o2") for graph in all_]) for door, all_ in graphs.items()}
    out = []
    for door, may in (("dump", frozenset()), ("compile", unlike)):
        different = (ops[door] - ops["pt2"]) + (ops["pt2"] - ops[door])
        if not set(different) <= may:
            out.append(f"{door} and archive: {dict(different)}")
    for door in graphs:
        for stage, counts, known in zip(("import", "o2"), (ops, after), DIFFERENCES.get(door, (set(), set()))):
            out += [
                f"{door}, after {stage}: {counts[door][op]} {op}, of the archive {counts['pt2'][op]}"
                for op in NAMED
                if op not in known and counts[door][op] != counts["pt2"][op]
            ]
        if layers_of(graphs[door]) != layers_of(graphs["pt2"]):
            out.append(f"{door}: layers {sorted(layers_of(graphs[door]))}, of the archive {sorted(layers_of(graphs['pt2']))}")
    return out


def compared(name):
    """Prints a line for a model; returns True if its doors agree."""
    start = time.perf_counter()
    torch.manual_seed(3)
    try:
        model, inputs = own() if name == "own" else stock(name)
    except ImportError as why:
        print(f"SKIPPED: {name}: {why}", file=sys.stderr)
        return True
    with tempfile.TemporaryDirectory() as folder:
        graphs = graphs_of(model, inputs, Path(folder))
        found = differences(graphs, UNLIKE.get(name, frozenset()))
    nodes = ", ".join(f"{door} {sum(len(graph) for graph in all_)}" for door, all_ in graphs.items())
    print(f"{name:22} nodes: {nodes}; {len(layers_of(graphs['pt2']))} layers, {time.perf_counter() - start:.0f} s", *found, sep="\n    ", flush=True)
    return not found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=("own", *STOCK, *UNLIKE))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    right = [compared(name) for name in arguments.names]
    unlike = sum(name in UNLIKE for name, agrees in zip(arguments.names, right) if agrees)
    print(f"{sum(right) - unlike} of {len(right)} models are one graph, {unlike} more except where PyTorch passes on different calls")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
