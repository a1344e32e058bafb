"""Pages of results with a part for each processor."""
import os
import platform
import re
from pathlib import Path


def processor():
    """Returns the name, family, and model of the processor, and the number of cores."""
    words = dict(map(str.strip, line.split(":", 1)) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    numbers = ", ".join(f"{key} {words[name]}" for key, name in (("family", "cpu family"), ("model", "model")) if name in words)
    name = words.get("model name", platform.machine())
    return f"{name}{f' ({numbers})' if numbers else ''}, {os.cpu_count()} cores"


def with_part(page, part):
    """Returns a page with a part, in place of the part with the same title if there is one."""
    head, *parts = re.split(r"^(?=## )", page, flags=re.M)
    title = part.partition("\n")[0]
    at = next((i for i, one in enumerate(parts) if one.partition("\n")[0] == title), len(parts))
    parts[at : at + 1] = [part.rstrip() + "\n\n"]
    return (head + "".join(parts)).rstrip() + "\n"


def part_of(page, title):
    """Returns the part of a page under the heading `title`, or an empty string."""
    return next((part for part in re.split(r"^(?=## )", page, flags=re.M) if part.startswith(f"## {title}\n")), "")
