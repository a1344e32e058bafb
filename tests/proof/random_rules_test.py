#!/usr/bin/python3
"""Random rules of known truth: none that is false is judged `same_bits` or `rounds`, and few true ones stay open.

Usage: random_rules_test.py [COUNT [SEED]]; PW_RANDOM_RULES sets COUNT, too.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import random_rules  # noqa: E402

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
BATCH = 100
MOST_OPEN = 0.05  # of the true rules


def judged(command, file, cache):
    env = {**os.environ, "PWR_CACHE_DIR": cache}
    done = subprocess.run(
        [BIN / "pwr", "--no-config", "--format", "json", command, "-r", file], capture_output=True, text=True, env=env, timeout=3600, check=False
    )
    assert done.returncode in (0, 1), done.stderr[-2000:]
    return {row["rule"]: row for row in json.loads(done.stdout)}


def main():
    count = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PW_RANDOM_RULES", "120"))
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20261127
    print(f"random rules: {count}, seed {seed}")
    rules = list(random_rules.rules(count, seed))
    wrong, left_open, counts = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(rules), BATCH):
            some = rules[first : first + BATCH]
            file = Path(folder) / f"rules{first}.pwr"
            file.write_text("".join(rule.text() + "\n" for rule in some), encoding="utf-8")
            rows = judged("verify", file, folder + "/cache")
            for rule in some:
                row = rows[rule.name]
                counts[(rule.true, row["verdict"])] = counts.get((rule.true, row["verdict"]), 0) + 1
                line = f"{row['verdict']}: {rule.text()}"
                if row["contradiction"]:
                    wrong.append("contradiction, " + line)
                if not rule.true and row["verdict"] in ("same_bits", "rounds"):
                    wrong.append("false, judged " + line)
                if rule.true and row["verdict"] != "same_bits":
                    (wrong if row["verdict"] == "refuted" else left_open).append("true, judged " + line)
    for (true, verdict), number in sorted(counts.items()):
        print(f"  {'true' if true else 'false':<6}{verdict:<18}{number:>6}")
    trues = sum(rule.true for rule in rules)
    for line in left_open[:20]:
        print("  open:", line)
    for line in wrong:
        print("  WRONG:", line)
    print(f"{len(wrong)} wrong; {len(left_open)} of {trues} true rules are open, at most {MOST_OPEN:.0%} may be")
    enough = trues >= 500  # a share of fewer rules is chance
    return 1 if wrong or (enough and len(left_open) > MOST_OPEN * trues) else 0


if __name__ == "__main__":
    sys.exit(main())
