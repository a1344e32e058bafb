#!/usr/bin/python3
"""Measures a build from scratch, without ccache: CPU seconds, files, preprocessed lines and the slowest compilations.

build.py [--output FILE.md] [--folder BUILD] [--preset NAME] [--jobs N]

Builds the targets of `./dev demo` first (pwr and pwviz), then the rest of `./dev test`. CPU seconds are user and system time of all processes; other load on
the machine increases them.
"""

import argparse
import json
import os
import platform
import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {"demo": 10.0, "test": 12.0}  # minutes of CPU, the tests' own included
# The same parts before special members, precompiled headers and unity builds; `test` with 7 minutes of tests.
BEFORE = {"demo": 30.5, "test": 22.4}


def cpu_seconds(command, **how):
    """Returns user and system seconds of a command and all its children; exits if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} failed:\n{done.stdout[-4000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compilations(folder):
    """Returns wall seconds by object file, from ninja's log."""
    out = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, name, *_ = line.split("\t")
        if name.endswith((".o", ".gch")):
            out[name] = (int(end) - int(begin)) / 1000
    return out


def preprocessed_lines(folder):
    """Returns the lines that the compiler reads, by object file, excluding precompiled headers."""
    out = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        while words and not re.search(r"(c\+\+|g\+\+|clang\+\+)[-0-9.]*$", words[0]):
            words.pop(0)  # the launcher
        object_file = words[words.index("-o") + 1]
        words[words.index("-o") + 1] = "/dev/stdout"
        words[words.index("-c")] = "-E"
        text = subprocess.run(words, cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        out[object_file] = text.count(b"\n")
    return out


def short(name):
    return re.sub(r"/CMakeFiles/[^/]+\.dir/", "/", name).replace("Unity/", "").removesuffix(".o")


def report(seconds, folder):
    times, lines = compilations(folder), preprocessed_lines(folder)
    sources = len(subprocess.run(["git", "ls-files", "*.cpp"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    headers = len(subprocess.run(["git", "ls-files", "*.hpp"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    rows = [
        "# Building from nothing",
        "",
        f"`./dev bench build` on {platform.machine()}, {os.cpu_count()} processors, without ccache: {sources} sources and {headers} headers in "
        f"{len(times)} compilations, {sum(lines.values())} preprocessed lines.",
        "",
        "| part | CPU minutes before | CPU minutes | ratio | limit |",
        "|---|---|---|---|---|",
    ]
    for part, what in (("demo", "what `./dev demo` builds: pwr, pwviz"), ("test", "what `./dev test` builds after it, without the tests' own time")):
        minutes = seconds[part] / 60
        rows.append(f"| {what} | {BEFORE[part]:.1f} | {minutes:.1f} | {minutes / BEFORE[part]:.2f} | {LIMITS[part]:.0f} |")
    rows += ["", "| slowest | seconds on the clock | preprocessed lines |", "|---|---|---|"]
    for name, time in sorted(times.items(), key=lambda item: -item[1])[:10]:
        rows.append(f"| {short(name)} | {time:.1f} | {lines.get(name, 0)} |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output")
    parser.add_argument("--folder", default=str(ROOT / "build/bench-build"))
    parser.add_argument("--preset", default="release")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    given = parser.parse_args()
    folder = Path(given.folder)
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    ninja = ["cmake", "--build", str(folder), "-j", given.jobs]
    seconds = {"demo": cpu_seconds(["cmake", "--preset", given.preset, "-B", str(folder)], env=environment)}
    seconds["demo"] += cpu_seconds([*ninja, "--target", "pwr", "pwviz"], env=environment)
    seconds["test"] = cpu_seconds(ninja, env=environment)
    text = report(seconds, folder)
    print(text, end="")
    if given.output:
        Path(given.output).write_text(text, encoding="utf-8")
    late = [part for part in seconds if seconds[part] / 60 > LIMITS[part]]
    sys.exit(f"over the limit: {', '.join(late)}" if late else 0)


if __name__ == "__main__":
    main()
