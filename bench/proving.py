#!/usr/bin/python3
"""Times the overhead of `--prove` on rewriting a whole decoder, with and without cached proofs, and proves the library.

proving.py [PWR]     exit 1 if something exceeds its limit
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PWR = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/pwr").resolve()
ROUNDS, LAYERS = 3, 32
MOST_MORE, MOST_LIBRARY = 2.0, 20.0
MODELS = {
    "llama fp8, 2 ranks": ["llama", "--layers", LAYERS, "--quant", "fp8", "--tp", 2],
    "llama": ["llama", "--layers", LAYERS],
    "moe": ["moe", "--layers", LAYERS, "--experts", 4],
}


def pwr(cache, *args):
    """Returns the seconds, and the printed JSON."""
    start = time.perf_counter()
    done = subprocess.run(
        [PWR, *map(str, args), "--format", "json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PWR_CACHE_DIR": str(cache)},
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"pwr {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return seconds, json.loads(done.stdout or "null")


def main():
    bad = []

    def notice(text, seconds, most):
        print(f"{text}: {seconds:.2f} s, may take {most} s: {'holds' if seconds <= most else 'DOES NOT HOLD'}")
        if seconds > most:
            bad.append(text)

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, options in MODELS.items():
            graph = folder / f"{options[0]}-{len(options)}.json"
            pwr(folder / "none", "generate", *options, "-o", graph)
            opt = ["opt", graph, "-r", "llm", "-p", "o2"]
            plain, cold, kept = [], [], []
            for i in range(ROUNDS):
                cache = folder / f"{graph.stem}-{i}"
                plain.append(pwr(cache, *opt)[0])
                seconds, proved = pwr(cache, *opt, "--prove")
                cold.append(seconds)
                kept.append(pwr(cache, *opt, "--prove")[0])
            rows = proved["proofs"]
            fired, left = sum(row["rewrites"] for row in rows), sum(row["left"] for row in rows)
            before = statistics.median(plain)
            print(f"{name}, {LAYERS} layers: {fired} rewrites by {len(rows)} rules, {left} not proved; {before:.2f} s without --prove")
            notice("  more with --prove, nothing kept", statistics.median(cold) - before, MOST_MORE)
            notice("  more with --prove, proofs kept", statistics.median(kept) - before, MOST_MORE)
        seconds, rows = pwr(folder / "library", "prove", "-r", "llm")
        notice(f"the {len(rows)} rules of llm, nothing kept", seconds, MOST_LIBRARY)
        notice("the same, kept", pwr(folder / "library", "prove", "-r", "llm")[0], MOST_LIBRARY)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
