"""PT2 archives beside PyTorch: models are exported, saved, imported by `pwr import` with their weights, and run, as they are
and after o2, on eager and cpu. Run by run.py.

    pt2.py --pwr build/release/bin/pwr [--corpus models.py] [--keep DIR] [NAME…]

Fails where a number differs, and where one of the own models is not computed. A model of the corpus that is refused, or whose ops are not
all known, is named with the reason; it fails, too, where fewer than LEAST of the corpus agree.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch.export import Dim, export, save  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
from compare import given, taken  # noqa: E402

import piecewise  # noqa: E402

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 6e-2, torch.float16: 6e-3}
FORMS = ("static", "dynamic", "core")
LEAST = 24 / 27  # of the corpus


class Written(torch.nn.Module):
    """Buffers, constants and inputs of every kind; a buffer and an input are written."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.tied = self.linear.weight
        self.register_buffer("steps", torch.zeros(3))
        self.register_buffer("shift", torch.ones(3), persistent=False)
        self.turned = torch.nn.Parameter(torch.arange(12.0).view(4, 3).t())
        self.constant = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x, pair, *, scale: int):
        self.steps.add_(1)
        x.mul_(scale)
        with torch.no_grad():
            half = pair[0] / 2
        y = self.linear(x) + self.constant + self.shift + self.steps + torch.tensor([5.0, 6.0, 7.0])
        left, right = torch.split(y @ self.turned, [1, 3], dim=1)
        return {"right": right, "left": left + half, "none": None, "mask": torch.where(x > 0, x, float("-inf"))}, pair[1].to(torch.bfloat16)


class Views(torch.nn.Module):
    """Symbols in shapes."""

    def forward(self, x):
        n = x.shape[0]
        return x.view(n * 2, -1), x.new_zeros(n + 3, 2) + 1, x.flatten().sum(), torch.cat([x, x[:1]])


def own_models():
    """Returns by name: model, arguments, keywords, dynamic dims of each argument."""
    torch.manual_seed(1)
    pair = (torch.randn(1), torch.randn(2).to(torch.float8_e4m3fn))
    rows = {0: Dim("rows", min=2, max=64)}
    return {
        "written": (Written(), (torch.randn(5, 4), pair), {"scale": 2}, {"x": rows, "pair": (None, None), "scale": None}),
        "views": (Views(), (torch.randn(6, 4),), {}, {"x": rows}),
    }


def corpus_models(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("corpus_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, make in module.R.items():
        torch.manual_seed(0)
        model, inputs, dims = make()
        generator = torch.Generator().manual_seed(7)
        for parameter in model.parameters():
            if parameter.dim() == 1:  # random norms and biases, so that a wrong one shows
                parameter.data.add_((torch.randn(parameter.shape, generator=generator) * 0.1).to(parameter.dtype))
        marks = tuple({d: Dim.AUTO for d in dims[i]} if i in dims else None for i in range(len(inputs)))
        yield name, (model, inputs, {}, marks)


def clone(tree):
    return torch.utils._pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, tree)


def tensors_of(tree):
    return [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


class Expected:
    """Results of a model for these inputs, and the contents of its buffers and inputs afterwards. Restores the model."""

    def __init__(self, model, inputs, keywords):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        given = clone(inputs)
        self.returned = [x.detach().clone() for x in tensors_of(model(*given, **keywords))]
        self.buffers = {name: value.clone() for name, value in model.named_buffers()}
        self.inputs = tensors_of(given)
        model.load_state_dict(before)

    def written(self, program):
        """Returns the tensors by the names of the program's inputs."""
        signature = program.graph_signature
        users = [n for n in signature.user_inputs if isinstance(n, str)]
        return {n: self.buffers[b] for n, b in signature.inputs_to_buffers.items()} | dict(zip(users, self.inputs))


def exported(form, model, inputs, keywords, marks):
    program = export(model, clone(inputs), keywords, dynamic_shapes=None if form == "static" else marks, strict=False)
    return program.run_decompositions() if form == "core" else program


def imported(pwr, archive, folder):
    """(graph, contents of its inputs); Error where `pwr import` refuses the archive."""
    graph, weights = folder / "graph.json", folder / "weights.safetensors"
    done = subprocess.run([pwr, "import", archive, "-o", graph, "--save-weights", weights], capture_output=True, text=True)
    if done.returncode:
        raise piecewise.Error(done.stderr.strip())
    return piecewise.load(graph), load_file(weights)


def difference(outputs, expected):
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, not {len(expected)}"
    for i, (got, want) in enumerate(zip(outputs, expected)):
        if tuple(got.shape) != tuple(want.shape) or got.dtype != given(want).dtype:
            return f"output {i}: {got.dtype}{tuple(got.shape)}, not {want.dtype}{tuple(want.shape)}"
        got, limit = taken(got, want.dtype), TOLERANCE.get(want.dtype, 0)
        if not torch.allclose(got.double(), want.double(), atol=limit, rtol=limit, equal_nan=True):
            return f"output {i}: largest difference {(got.double() - want.double()).abs().max().item():.3g}"
    return ""


def unknown_ops(graph):
    return sorted({node.op for node in graph.nodes if "." in node.op})


def verdict(pwr, archive, program, inputs, expected, rules, folder):
    """("agrees" | "unknown ops" | "refused" | "differs", details)."""
    try:
        graph, contents = imported(pwr, archive, folder)
    except piecewise.Error as error:
        return "refused", str(error)[:400]
    if unknown := unknown_ops(graph):
        return "unknown ops", " ".join(unknown)
    names = [n for n in program.graph_signature.user_inputs if isinstance(n, str)]
    contents |= dict(zip(names, tensors_of(inputs)))
    arrays = {i.name: given(contents[i.name]) for i in graph.inputs}
    after = expected.written(program)
    for step, of in (("as it is", graph), ("after o2", None)):
        for backend in ("eager", "cpu"):
            try:
                of = of or graph.rewrite(rules, "o2")
                subprocess.run([pwr, "split", folder / "graph.json"], check=True, capture_output=True)
                outputs = of.run(arrays, backend=backend)
                written = [outputs.written[n] for n in sorted(outputs.written)]
                wanted = [after[n] for n in sorted(outputs.written)]
            except (piecewise.Error, TypeError, subprocess.CalledProcessError) as error:
                return "refused", f"{step}, {backend}: {str(error)[:300]}"
            if found := difference(list(outputs)[: len(expected.returned)], expected.returned) or difference(written, wanted):
                return "differs", f"{step}, {backend}: {found}"
    return "agrees", ""


def check(pwr, name, case, rules, folder):
    """Returns the verdict of each form."""
    model, inputs, keywords, marks = case
    model.eval().requires_grad_(False)
    with torch.no_grad():
        expected = Expected(model, inputs, keywords)
        for form in FORMS:
            place = folder / f"{name}.{form}"
            place.mkdir(parents=True, exist_ok=True)
            try:
                program = exported(form, model, inputs, keywords, marks)
            except Exception as error:  # a model that PyTorch cannot export is not tested
                yield form, "not exported", str(error).strip().splitlines()[0][:160]
                continue
            save(program, place / "model.pt2")
            yield form, *verdict(pwr, place / "model.pt2", program, inputs, expected, rules, place)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pwr", type=Path, required=True)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for archives, graphs and weights")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rules = piecewise.rules("llm")
    counts, missing = Counter(), Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        groups = [("own", own_models().items())]
        if arguments.corpus:
            try:
                groups.append(("corpus", corpus_models(arguments.corpus)))
            except ImportError as error:
                print(f"  the corpus is left out: {error}")
        for group, models in groups:
            for name, case in models:
                if arguments.names and name not in arguments.names:
                    continue
                for form, found, details in check(arguments.pwr, name, case, rules, folder):
                    counts[group, form, found] += 1
                    missing.update(details.split() if found == "unknown ops" else [])
                    if found != "agrees":
                        print(f"  {name} ({form}): {found}: {details}", flush=True)
    for (group, form, found), count in sorted(counts.items()):
        print(f"PT2 archives, {group}, {form}: {count} {found}")
    if missing:
        print("ops that are not known, by models and forms: " + ", ".join(f"{op} {count}" for op, count in missing.most_common()))
    for form in FORMS:  # of the corpus nine models in ten, whatever ops they have
        whole = sum(count for (group, of, _), count in counts.items() if (group, of) == ("corpus", form))
        if not arguments.names and counts["corpus", form, "agrees"] < LEAST * whole:
            print(f"PT2 archives, corpus, {form}: fewer than {LEAST:.0%} agree")
            counts["corpus", form, "differs"] += 1
    bad = [key for key in counts if key[2] == "differs" or (key[0] == "own" and key[2] != "agrees")]
    return 1 if bad or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
