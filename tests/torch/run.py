#!/usr/bin/env python3
"""Compares imported programs with PyTorch: one-op graphs, small models in three forms, random programs with writes, random functions, PT2 archives, ONNX, torch.compile, pages;
on demand stock models.

    run.py --build build/release [--env build/torch-env] [--cases DIR] [--stock]

Makes an environment with PyTorch, or takes the interpreter that PW_TORCH_PYTHON names. Exit codes: 0 ok, 1 something
differs, 77 there is no PyTorch.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77

sys.path.insert(0, str(ROOT / "requirements"))
from environments import environment  # noqa: E402


def call(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise OSError(f"`{' '.join(map(str, command))}` ended with {done.returncode}: {said[-1][:160]}")


def torch_python(place, base):
    """An interpreter that imports torch and numpy, or None and the reason."""
    given = os.environ.get("PW_TORCH_PYTHON")
    try:
        python = Path(given) if given else environment("torch", place, call, base)
    except OSError as reason:
        return None, str(reason)
    done = subprocess.run([str(python), "-c", "import torch, numpy; print(torch.__version__)"], capture_output=True, text=True)
    if done.returncode:
        return None, f"{python} has no PyTorch: {done.stderr.strip().splitlines()[-1][:160]}"
    return python, done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--env", type=Path, default=ROOT / "build/torch-env")
    parser.add_argument("--base", default="/usr/bin/python3", help="the interpreter that the module was built for")
    parser.add_argument(
        "--cases",
        type=Path,
        default=ROOT.parent / "shared/peers/corpus/conformance.py",
        help="more one-op cases: a script that writes them to the folder it is given",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        default=ROOT.parent / "shared/peers/corpus/models.py",
        help="more models: a script with a table R of them; dump_all.py beside it writes their texts to the folder it is given",
    )
    parser.add_argument("--stock", action="store_true", help="stock models of transformers and timm too, which takes hours")
    parser.add_argument("--chains", type=int, default=300, help="random chains of views and writes; a slow run takes 5000")
    parser.add_argument("--functions", type=int, default=40, help="random functions; a slow run takes 1000")
    arguments = parser.parse_args()
    python, said = torch_python(arguments.env, arguments.base)
    if python is None:
        print(f"SKIPPED: no PyTorch: {said}", file=sys.stderr)
        return SKIPPED
    print(f"PyTorch {said}")
    paths = [arguments.build / "python", ROOT / "python"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    corpus = ["--corpus", arguments.corpus] if arguments.corpus.exists() else []
    steps = [
        [ROOT / "tests/import_programs/check.py", "--torch", "--programs", "400"],
        [ROOT / "tests/torch/readme.py"],
        [ROOT / "tests/torch/core_ops.py"],
        [ROOT / "tests/torch/compare.py", *(["--cases", arguments.cases] if arguments.cases.exists() else [])],
        [ROOT / "tests/torch/forms.py", "--pwr", arguments.build / "bin/pwr"],
        [ROOT / "tests/torch/onnx_nodes.py"],
        [ROOT / "tests/torch/onnx_out.py"],
        [ROOT / "tests/torch/pt2.py", "--pwr", arguments.build / "bin/pwr", *corpus],
        [ROOT / "tests/torch/pt2_run.py", "--pwr", arguments.build / "bin/pwr", *(["--stock", *corpus] if arguments.stock else [])],
        [ROOT / "tests/torch/one_graph.py"],
        [ROOT / "tests/torch/symbols.py"],
        [ROOT / "tests/torch/compiled.py", *corpus],
        [ROOT / "tests/torch/inductor.py"],
        [ROOT / "tests/torch/device.py", *corpus],
        [ROOT / "tests/torch/capture.py", *corpus],
        [ROOT / "tests/torch/trees.py"],
        [ROOT / "tests/torch/frozen.py", *corpus],
        [ROOT / "tests/torch/writes.py"],
        [ROOT / "tests/torch/partial.py"],
        [ROOT / "tests/torch/usage.py"],
        [ROOT / "tests/torch/exported.py"],
        [ROOT / "tests/torch/memory.py", "--count", arguments.chains],
        [ROOT / "tests/torch/functions.py", "--count", arguments.functions],
        [ROOT / "tests/torch/checks.py"],
        [ROOT / "tests/torch/threads.py"],
        [ROOT / "tests/torch/lens.py"],
        [ROOT / "tests/torch/engines.py"],
        [ROOT / "tests/notebooks/run_notebook.py", ROOT / "notebooks/04-your-model.ipynb"],
    ]
    steps += [[ROOT / "tests/torch/stock.py"]] if arguments.stock else []
    codes = [subprocess.run([str(python), *map(str, step)], env=environment, cwd=ROOT).returncode for step in steps]
    dumps = arguments.corpus.parent / "dump_all.py"
    if dumps.exists():
        codes.append(pages_of(python, dumps, arguments.base, environment))
    return 1 if any(codes) else 0


def pages_of(python, dumps, base, environment):
    """Checks the properties of every page for all texts of the corpus; returns an exit code."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(python), str(dumps), folder], env=environment, stdout=subprocess.DEVNULL).returncode
        code = subprocess.run([base, str(ROOT / "tests/viz/property_test.py"), "--folder", folder], cwd=ROOT).returncode
        return done or (0 if code == SKIPPED else code)


if __name__ == "__main__":
    sys.exit(main())
