"""PT2 archives through `pwr run`, beside PyTorch: models are exported with fixed sizes and with sizes that vary, and run from the archive with the
tensors that give each symbol its number; those with sizes that vary also at other sizes. Run by run.py with the models of this file, each for some ops
that torch.export leaves whole.

    pt2_run.py --pwr build/release/bin/pwr [--stock] [--corpus models.py] [--keep DIR] [NAME…]

Fails where a number differs and where one of the own models is not computed. Of --stock and --corpus those that are refused are named with the reason;
it fails, too, where fewer than LEAST of them agree.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.export import Dim, export, save  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))

LEAST = 80 / 88
TOLERANCE = {torch.float32: "2e-4", torch.bfloat16: "6e-2", torch.float16: "6e-3"}


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def padded(x):
    y = F.pad(x, (1, 2), value=0.5) + F.pad(x, (1, 2), mode="replicate")
    return F.pad(F.pad(y, (2, 1), mode="reflect"), (3, 0), mode="circular")


def spread(x):
    return x.repeat_interleave(2, 1) + x.repeat_interleave(2, dim=-2), x.repeat_interleave(3)


def products(x):
    heads = x.unflatten(2, (4, -1)).transpose(1, 2)
    scores = torch.matmul(heads, heads[:1].mT) + torch.einsum("bhqd,bhkd->bhqk", heads, heads)
    return torch.einsum("bhqk,bhkd->bqhd", scores, heads).flatten(2), x.mT @ x, x @ x[0, 0]


def activated(x):
    parts = F.softplus(x), F.softplus(x, 2.0, 1.0), F.glu(x), F.selu(x), F.celu(x, 0.5), F.relu6(3 * x), F.logsigmoid(x), F.hardshrink(x)
    return parts + (F.threshold(x, 0.1, 0.3), F.cosine_similarity(x, x.flip(1), -1), x.logsumexp(1), x.logsumexp(-1, keepdim=True))


def special_numbers(x):
    y = x.flip(1)
    ends = torch.where(x > 1, torch.inf, torch.where(x < -1, -torch.inf, x))
    odd = torch.where(y > 1, torch.nan, ends)
    parts = odd.nan_to_num(), odd.nan_to_num(0.5), odd.nan_to_num(0.5, 7.0, -7.0), torch.hypot(ends, y), torch.logaddexp(ends, ends.flip(2))
    signs = (
        torch.copysign(x, y),
        torch.copysign(x, F.relu(y) * -1.0),
        torch.copysign(x, -2.0),
        F.softshrink(odd, 0.3),
        torch.xlogy(F.relu(x), y.abs()),
    )
    return parts + signs + (x.median(), odd.median(), x.median(1)[0], odd.median(-1, keepdim=True)[0], F.hardtanh((3 * x).long(), -2, 4))


def second_names(x):
    y = torch.multiply(x, 2).subtract(1).divide(3).absolute().negative()
    return torch.concatenate([y, x.clip(-0.5, 0.5)], 1), torch.greater(x, 0), x.view_as(x) + x.expand_as(x), x.arctan()


def moved(x):
    rolled = x.roll(1, 1), x.roll((-2, 3), (0, -1)), x.roll(5), x.fliplr(), x.flipud(), x.tile(2, 1)
    return rolled + (
        x.std(1),
        x.std(),
        x.var(),
        x.std((0, 2), correction=0, keepdim=True),
        torch.outer(x[0, 0], x[0, 1]),
        x.ravel(),
        x.broadcast_to(2, *x.shape),
    )


def counted(x):
    n = x.shape[1]
    far = torch.arange(n, -n, -1.0)
    return far.float() @ torch.ones(2 * n, 3), torch.arange(n, 2 * n), torch.arange(n - 1, -1, -1), torch.linspace(-1, 1, 5), torch.eye(4)


def pictures(x):
    shuffled = F.pixel_shuffle(x, 2)
    columns = F.unfold(x, (3, 2), dilation=1, padding=(1, 0), stride=(2, 1))
    return shuffled, F.pixel_unshuffle(shuffled, 2), columns, F.channel_shuffle(x, 2), F.max_pool2d(x, 2)


class Convolved(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.even = torch.nn.Conv2d(4, 4, 4, padding="same")
        self.odd = torch.nn.Conv2d(4, 4, 3, padding="same", dilation=2)
        self.valid = torch.nn.Conv2d(4, 6, 3, padding="valid")
        self.groups = torch.nn.GroupNorm(2, 6)
        self.instance = torch.nn.InstanceNorm2d(6, affine=True)
        self.up = torch.nn.ConvTranspose2d(6, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the older form is what models have
            self.weighted = torch.nn.utils.weight_norm(torch.nn.Conv1d(6, 3, 3), dim=2)

    def forward(self, x):
        y = self.groups(self.valid(self.odd(self.even(x))))
        return self.weighted(self.instance(self.up(y)).flatten(2))


def as_far_as_a_table(x):
    """A guard keeps one size below another: only those sizes run."""
    table = torch.arange(8.0).view(1, 8)
    return x.sum(-1) + table[:, max(0, 8 - x.shape[1]) :]


def biased_as_far_as_a_table(x):
    """The first start is 0 for every size that runs, so that the second dim is 1."""
    table = torch.arange(8.0).view(1, 1, 8)
    return x @ x.mT + table[:, max(0, 1 - x.shape[1]) :, max(0, 8 - x.shape[1]) :]


def of_few_rows(x):
    """A guard between two symbols: larger inputs take the other branch."""
    return x * 2 if x.shape[0] + x.shape[1] < 9 else x * 3


def own_models():
    """Returns by name: module, inputs, dynamic dims of each, and whether a larger size must be refused."""
    torch.manual_seed(1)
    text, picture = torch.randn(2, 6, 8), torch.randn(2, 4, 8, 8)
    rows, both = {0: {0, 1}}, {0: {0}}
    out = {f.__name__: (Function(f), (text,), rows) for f in (padded, spread, products, activated, special_numbers, second_names, moved, counted)}
    out["as_far_as_a_table"] = (Function(as_far_as_a_table), (text,), rows)
    out["biased_as_far_as_a_table"] = (Function(biased_as_far_as_a_table), (text,), rows)
    out["of_few_rows"] = (Function(of_few_rows), (text,), rows)
    out["pictures"] = (Function(pictures), (picture,), both)
    out["convolved"] = (Convolved(), (picture,), both)
    return out


def corpus_models(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("corpus_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.R


def shaken(model):
    """Random norms and biases, so that a wrong one shows."""
    generator = torch.Generator().manual_seed(7)
    for parameter in model.eval().requires_grad_(False).parameters():
        if parameter.dim() == 1:
            parameter.data.add_((torch.randn(parameter.shape, generator=generator) * 0.1).to(parameter.dtype))
    return model


def larger(inputs, varies):
    """One more element along each dim that varies."""
    out = []
    for i, x in enumerate(inputs):
        for dim in sorted(varies.get(i, ())):
            x = torch.cat([x, x.narrow(dim, 0, 1)], dim)
        out.append(x.contiguous())
    return tuple(out)


class Archive:
    """A model exported into a folder."""

    def __init__(self, pwr, model, inputs, marks, folder):
        self._pwr, self._folder, self._path = pwr, folder, folder / "model.pt2"
        self.program = export(model, tuple(x.clone() for x in inputs), dynamic_shapes=marks, strict=False)
        save(self.program, self._path)
        self._names = [n for n in self.program.graph_signature.user_inputs if isinstance(n, str)]
        self._weights = None

    def _call(self, *arguments):
        return subprocess.run([self._pwr, *map(str, arguments)], capture_output=True, text=True, timeout=300)

    def _reason(self, done):
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()[-1:] or [f"exit code {done.returncode}"]
        return lines[0][:300]

    def run(self, inputs, wanted, *more):
        """("agrees" | "differs" | "refused", why)."""
        weights, expected = self._folder / "all.safetensors", self._folder / "expected.safetensors"
        if self._weights is None:
            done = self._call("import", self._path, "-o", self._folder / "graph.json", "--save-weights", weights)
            if done.returncode:
                return "refused", self._reason(done)
            self._weights = load_file(weights)
        save_file(self._weights | {n: x.contiguous() for n, x in zip(self._names, inputs)}, weights)
        save_file({f"out{i:02}": x.detach().clone().contiguous() for i, x in enumerate(wanted)}, expected)
        limit = max((TOLERANCE.get(x.dtype, "0") for x in wanted), key=float)
        done = self._call("run", self._path, "--weights", weights, "--expect", expected, "--rtol", limit, "--atol", limit, *more)
        if done.returncode == 4:
            return "differs", done.stdout[-600:]
        return ("agrees", "") if done.returncode == 0 else ("refused", self._reason(done))


def returned(model, inputs):
    with torch.no_grad():
        return [x for x in torch.utils._pytree.tree_leaves(model(*(x.clone() for x in inputs))) if isinstance(x, torch.Tensor)]


def check(pwr, case, folder):
    """Returns the verdict of each form."""
    model, inputs, varies = case
    shaken(model)
    marks = tuple({dim: Dim.AUTO for dim in varies[i]} if i in varies else None for i in range(len(inputs)))
    for form in ("static", "dynamic"):
        place = folder / form
        place.mkdir(parents=True, exist_ok=True)
        try:
            archive = Archive(pwr, model, inputs, None if form == "static" else marks, place)
        except Exception as error:  # a model that PyTorch cannot export is not tested
            yield form, "not exported", (str(error).strip().splitlines() or [""])[0][:160]
            continue
        found, why = archive.run(inputs, returned(model, inputs))
        yield form, found, why
        if form == "static" or found != "agrees":
            continue
        more = larger(inputs, varies)
        try:
            wanted = returned(archive.program.module(), more)
        except Exception:  # the program is for some sizes alone: others are refused
            found, why = archive.run(more, returned(model, inputs))
            yield "refusal", "agrees" if found == "refused" else "differs", f"{found}, and PyTorch refuses: {why}"
            continue
        yield "larger", *archive.run(more, wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pwr", type=Path, required=True)
    parser.add_argument("--stock", action="store_true", help="the models of stock.py, too")
    parser.add_argument("--corpus", type=Path, help="those of a script with a table R, too")
    parser.add_argument("--keep", type=Path, help="a folder for archives and weights")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    groups = {"own": {name: (lambda case=case: case) for name, case in own_models().items()}}
    if arguments.stock or arguments.corpus:
        try:
            import transformers  # noqa: F401
            from stock import MODELS

            if importlib.util.find_spec("timm") is None:
                print("  models of timm are left out: it is not installed")
                MODELS = {name: make for name, make in MODELS.items() if not name.startswith("timm_")}
            groups["stock"] = (MODELS if arguments.stock else {}) | (corpus_models(arguments.corpus) if arguments.corpus else {})
        except ImportError as error:
            print(f"  stock models are left out: {error}")
    counts, bad = Counter(), 0
    with tempfile.TemporaryDirectory() as temporary:
        for group, models in groups.items():
            for name, make in models.items():
                if arguments.names and name not in arguments.names:
                    continue
                torch.manual_seed(0)
                for form, found, why in check(arguments.pwr, make(), (arguments.keep or Path(temporary)) / name):
                    counts[group, form, found] += 1
                    bad += found == "differs" or (group == "own" and found != "agrees")
                    if found != "agrees":
                        print(f"  {name} ({form}): {found}: {why}", flush=True)
    for (group, form, found), count in sorted(counts.items()):
        print(f"PT2 archives by pwr run, {group}, {form}: {count} {found}")
    for form in ("static", "dynamic"):
        whole = sum(count for (group, of, found), count in counts.items() if (group, of) == ("stock", form) and found != "not exported")
        if not arguments.names and counts["stock", form, "agrees"] < LEAST * whole:
            print(f"PT2 archives by pwr run, {form}: fewer than {LEAST:.0%} agree")
            bad += 1
    return 1 if bad or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
