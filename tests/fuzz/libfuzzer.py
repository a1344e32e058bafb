#!/usr/bin/python3
"""A minute of libFuzzer on one format, from the project's own examples of it.

    libfuzzer.py PROGRAM FORMAT [SECONDS]     PROGRAM: fuzz_parsers of the preset fuzz

Findings are stored next to the program, in crashes/FORMAT-…, and `PW_FUZZ_FORMAT=FORMAT PROGRAM FILE` runs one again. What
it learns is kept in corpus/FORMAT there, so that the next run goes on from it. Exit code 77: the program is not built.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS_OF_ONE = 20
MEGABYTES = 3000
MOST_BYTES = 20_000  # the examples of two formats are larger; what is found in those is found in a part of them


def main():
    program, name = Path(sys.argv[1]).resolve(), sys.argv[2]
    seconds = sys.argv[3] if len(sys.argv) > 3 else os.environ.get("PW_FUZZ_SECONDS", "60")
    if not program.exists():
        print(f"SKIPPED: {program} is not built: ./dev test slow builds it", file=sys.stderr)
        return 77
    crashes, corpus = program.parent.parent / "crashes", program.parent.parent / "corpus" / name
    for folder in (crashes, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PW_FUZZ_FORMAT": name,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    with tempfile.TemporaryDirectory() as seeds:
        subprocess.run([program], env={**environment, "PW_FUZZ_SEEDS": seeds}, check=True)
        done = subprocess.run(
            [
                program,
                f"-max_total_time={seconds}",
                f"-timeout={SECONDS_OF_ONE}",
                f"-rss_limit_mb={MEGABYTES}",
                f"-max_len={MOST_BYTES}",
                f"-dict={seeds}/words",
                f"-artifact_prefix={crashes}/{name}-",
                "-print_final_stats=1",
                corpus,
                f"{seeds}/corpus",
            ],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode:
        print(done.stderr[-12000:])
        return 1
    print("\n".join(line for line in done.stderr.splitlines() if "stat::" in line or line.startswith("Done")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
