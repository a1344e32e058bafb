"""Environments for peers: processes with a time limit, retained virtual environments, and a description of the machine."""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "requirements"))
from environments import environment  # noqa: E402


class Unavailable(Exception):
    pass


def call(command, limit=1800, **options):
    """Returns standard output, or raises Unavailable with the last line of the error."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit, **options)
    except FileNotFoundError as error:
        raise Unavailable(f"`{error.filename}` is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"took more than {limit} s") from None
    if done.returncode:
        messages = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise Unavailable(f"ended with {done.returncode}: {messages[-1][:160]}")
    return done.stdout


def python_with(lock, cache):
    """Returns the interpreter of an environment with the packages of a lock, created on first use."""
    return environment(lock, cache / lock, lambda command: call(command, 3600))


def one_thread():
    """Returns environment variables under which numeric libraries start no threads."""
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}


def processor():
    """Returns the processor's name with its numbers, because clouds give several models one name. Equal to processor() of measure.cpp."""
    first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines()
    fields = {name.strip(): value for name, _, value in (line.partition(": ") for line in first)}
    if "model name" not in fields or "cpu family" not in fields:
        return fields.get("model name", "unknown processor")
    return f"{fields['model name']}, family {fields['cpu family']} model {fields['model']}"


def machine():
    return f"One thread of {os.cpu_count()} cores, {processor()}, load {os.getloadavg()[0]:.1f} when it began."


def write_section(path, title, lines, section=None):
    """Replaces the section under this heading, by default that of this processor; other sections stay."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in text.split("\n## ")[1:]}
    sections[section or processor()] = "\n".join(lines).strip()
    parts = [f"# {title}"] + [f"## {name}\n\n{part}" for name, part in sorted(sections.items())]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
