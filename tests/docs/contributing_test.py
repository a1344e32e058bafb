#!/usr/bin/python3
"""Runs the walk of CONTRIBUTING.md, from a clone to a fused op, and checks its results."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
SECTION = "## From a clone to a fused op"
MOST_COMMANDS = 15
BUILD = ["./dev build", 'export PATH="$PWD/build/release/bin:$PATH"']  # done before the test


def commands_of(block):
    """Yields the commands of a shell block, each with its here-document."""
    lines = iter(block.splitlines())
    for line in lines:
        end = re.search(r"<<'(\w+)'", line)
        while end and not line.endswith("\n" + end[1]):
            line += "\n" + next(lines)
        if line.strip() and not line.startswith("#"):
            yield line


def walk():
    """Returns (commands that build, commands that follow)."""
    page = Path("CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page[page.index(SECTION) :]
    section = section[: section.index("\n## ", 1)]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, flags=re.M | re.S)
    assert len(blocks) == 2, f"{len(blocks)} blocks of commands, not one that builds and one to follow"
    return [list(commands_of(block)) for block in blocks]


def run(command, folder):
    environment = {**os.environ, "NO_COLOR": "1", "PATH": f"{BIN}:{os.environ['PATH']}", "PWR_CACHE_DIR": f"{folder}/cache"}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def outputs_of(commands, folder):
    """Runs the commands, which must succeed. Returns the output of each by its first two words."""
    printed = {}
    for command in commands:
        done = run(command, folder)
        assert done.returncode == 0, f"`{command.splitlines()[0]}` ends with {done.returncode}\n{done.stdout}{done.stderr}"
        printed[" ".join(command.split()[:2])] = done.stdout + done.stderr
    return printed


def check_what_it_shows(printed, mine):
    assert "three_ops_become_one" in printed["pwr test"], printed["pwr test"]
    assert re.search(r"gate_residual +(same bits|rounds)", printed["pwr verify"]), printed["pwr verify"]
    assert "1 match" in printed["pwr explain"], printed["pwr explain"]
    assert "all outputs of all steps pass the check" in printed["pwr run"], printed["pwr run"]
    after = (mine / "after.pwg").read_text(encoding="utf-8")
    assert "gated_residual(" in after and "sigmoid" not in after, after
    kernels = list(mine.glob("kernels/class_0/k_*.cu"))
    assert len(kernels) == 1 and "__global__" in kernels[0].read_text(encoding="utf-8"), kernels
    assert "split + gated_residual + rms_norm" in printed["pwr compile"], printed["pwr compile"]
    page = (mine / "gate.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "gate_residual" in page, page[:200]


def check_untyped_rule_is_refuted(folder):
    """Checks the page's claim that the rule is refuted without the types of its left side."""
    rule = folder / "build/mine/gate.pwr"
    text = rule.read_text(encoding="utf-8")
    left = text[text.index("rule gate_residual {") : text.index("=>")]
    rule.write_text(text.replace(left, left.replace(": T[*s]", "").replace("  where T in {bf16, f32}\n", "")), encoding="utf-8")
    done = run("pwr verify -r build/mine/gate.pwr", folder)
    assert done.returncode == 1 and "refuted" in done.stdout, f"{done.returncode}\n{done.stdout}{done.stderr}"


def main():
    build, steps = walk()
    assert build == BUILD, build
    count = len(build) + len(steps)
    assert count <= MOST_COMMANDS, f"{count} commands, more than {MOST_COMMANDS}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_what_it_shows(outputs_of(steps, folder), folder / "build/mine")
        check_untyped_rule_is_refuted(folder)
    print(f"contributing: {count} commands, {len(steps)} of them run; the op, its kernel and its picture are there")


if __name__ == "__main__":
    sys.exit(main())
