#!/usr/bin/env python3
"""Compares the matches of rules with those of vLLM's own passes, case by case, on the cases of the folder PW_VLLM_PEERS.

    matches.py all cases, each in its own process; exit code 77 without the folder
    matches.py --run SCRIPT ARGUMENTS…     one script of the folder, with rules in addition to vLLM's passes
"""
import collections
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

PEERS = Path(os.environ.get("PW_VLLM_PEERS", ""))
WORK = Path(os.environ["PW_VLLM_WORK"]) / "matches"
SKIPPED = 77
RUNS = (
    (1, "pass_cases.py", []),
    (2, "pass_cases.py", ["allreduce"]),
    (1, "model_cases.py", ["llama", "qwen2", "qwen3", "llama_fp8", "llama_fp8dyn", "llama_fp8block", "qwen3_fp8", "opt"]),
    (1, "model_cases.py", ["mixtral", "deepseek_v2", "qwen3_moe_fp8", "deepseek_v3_fp8"]),
    (2, "model_cases.py", ["llama_fp8"]),
)
FEWEST = 124  # matches of vLLM's passes, so that cases that stop working are noticed


def run(script, arguments):
    """Runs a script of the folder; each case also runs the rules on a copy of its graph, before vLLM's passes."""
    sys.path.insert(0, str(PEERS))
    import peer
    from vllm.compilation.passes.inductor_pass import get_pass_context, pass_context
    from vllm.config.utils import Range

    from piecewise.vllm import comparison
    from piecewise.vllm.rules import RulesPass

    make_post, rules, out = peer.make_post, RulesPass(params={"tp": os.environ["TP"]}), []

    def with_rules(case, passes, done, note=""):
        post = make_post(case, passes, done, note)

        def both(graph):
            with pass_context(Range(1, 64)):
                rules(comparison.copied(graph))
                try:
                    post(graph)
                finally:
                    names = {name.lower(): name for name in comparison.FAMILIES}
                    given = {row["name"].replace("_", "").lower(): row["matched"] for row in done[0]["passes"]}
                    theirs = {name: given[key] for key, name in names.items() if key in given}
                    table = comparison.rows(len(rules.report) - 1, theirs, rules.report[-1].done)
                    for row in table:
                        if row.name in comparison.FAMILIES:
                            out.append((case, row.name, row.theirs or 0, row.ours, dict(row.rules), rules.report[-1].done.refused))

        return both

    peer.make_post = with_rules
    sys.argv = [script, *arguments]
    try:
        runpy.run_path(str(PEERS / script), run_name="__main__")
    finally:
        print("MATCHES " + json.dumps(out))


def main():
    if not (PEERS / "peer.py").exists():
        print(f"SKIPPED: the folder PW_VLLM_PEERS has no cases: {PEERS}", file=sys.stderr)
        return SKIPPED
    (WORK / "stub").mkdir(parents=True, exist_ok=True)
    shutil.copy(os.environ["PW_VLLM_STUB"], WORK / "stub/libcuda.so.1")
    environment = os.environ | {"PW_VLLM_PEER": str(WORK)}
    subprocess.run([sys.executable, str(PEERS / "configs.py")], env=environment, check=True, stdout=subprocess.DEVNULL)
    rows = []
    for ranks, script, arguments in RUNS:
        command = [sys.executable, __file__, "--run", script, *arguments]
        done = subprocess.run(command, env=environment | {"TP": str(ranks)}, capture_output=True, text=True)
        found = [line for line in done.stdout.splitlines() if line.startswith("MATCHES ")]
        if not found:
            print(done.stdout[-2000:], done.stderr[-3000:], sep="\n")
            return 1
        rows += json.loads(found[0].removeprefix("MATCHES "))
    return report(rows)


def report(rows):
    """Prints the table; returns an exit code."""
    theirs = ours = 0
    missed, refused = [], collections.Counter()
    for case, name, wanted, made, rules, why in rows:
        theirs, ours = theirs + wanted, ours + min(wanted, made)
        if wanted or made:
            print(
                f"{case:44} {name:24} vLLM {wanted:2}  rules {made:2}  {', '.join(f'{r} {n}' for r, n in rules.items())}{why and '  refused: ' + why}"
            )
        missed += [case] if made < wanted else []
        refused.update([why] if why else [])
    print(f"{ours} of {theirs} matches of vLLM's passes in {len({row[0] for row in rows})} graphs")
    for why, count in refused.items():
        print(f"{count} × stays as it is: {why}")
    return 1 if missed or refused or theirs < FEWEST else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
