#!/usr/bin/env python3
"""Tests Piecewise in a vLLM without a GPU: the compiler of its pieces, and rules as its pass.

    run.py --build build/release [--env build/vllm-env] [--peers DIR] [TEST…]

Makes an environment with vLLM (about 10 minutes, 8 GB), or takes the interpreter that PW_VLLM_PYTHON names. PW_VLLM_PEERS or --peers names a folder with
cases of vLLM's passes, without which matches.py is skipped. Exit codes: 0 ok, 1 something differs, 77 vLLM is absent.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77

sys.path.insert(0, str(ROOT / "requirements"))
from environments import environment  # noqa: E402
from stub import make  # noqa: E402


def call(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise OSError(f"`{' '.join(map(str, command))}` ended with {done.returncode}: {output[-1][:160]}")


def vllm_python(place, base):
    """Returns an interpreter that finds vLLM, and its version and folder; or None and the reason."""
    given = os.environ.get("PW_VLLM_PYTHON")
    try:
        python = Path(given) if given else environment("vllm", place, call, base)
    except OSError as reason:
        return None, str(reason)
    code = "import importlib.metadata as m, importlib.util as u; print(m.version('vllm'), u.find_spec('vllm').submodule_search_locations[0])"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    if done.returncode:
        return None, f"{python} has no vLLM: {(done.stderr.strip().splitlines() or ['no output'])[-1][:160]}"
    return python, done.stdout.split()


def install_metadata(folder):
    """Writes the entry points of the wheel, so that the package of this checkout is found as if it were installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    lines = [f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items()) for group, points in project["entry-points"].items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--env", type=Path, default=ROOT / "build/vllm-env")
    parser.add_argument("--base", default="/usr/bin/python3", help="the interpreter that the module was built for")
    parser.add_argument("--peers", type=Path, default=Path(os.environ.get("PW_VLLM_PEERS", ROOT.parent / "shared/peers/vllm")))
    parser.add_argument("tests", nargs="*", help="compiler, rules, matches; all if left out")
    arguments = parser.parse_args()
    python, output = vllm_python(arguments.env, arguments.base)
    if python is None:
        print(f"SKIPPED: no vLLM: {output}", file=sys.stderr)
        return SKIPPED
    print(f"vLLM {output[0]}")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        install_metadata(work / "site")
        stub = make(sorted(Path(output[1]).glob("**/*.so")), work / "stub/libcuda.so.1")
        paths = [arguments.build.resolve() / "python", ROOT / "python", work / "site"]
        settings = {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PW_VLLM_WORK": str(work),
            "PW_VLLM_STUB": str(stub),
            "PW_VLLM_PEERS": str(arguments.peers.resolve()),
            "PWR_CACHE_DIR": str(work / "kernels"),
            "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
            "VLLM_DISABLE_COMPILE_CACHE": "0",  # tests of saved pieces need it
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        names = arguments.tests or ["compiler", "rules", "matches"]
        codes = [subprocess.run([str(python), str(ROOT / f"tests/vllm/{name}.py")], env=os.environ | settings, cwd=work).returncode for name in names]
    return 1 if any(code not in (0, SKIPPED) for code in codes) else 0


if __name__ == "__main__":
    sys.exit(main())
