#!/usr/bin/python3
"""Opens the pages of pw_bench_viz in a headless Chromium, and times opening and drawing.

viz_browser.py FOLDER [--append FILE]     exit code 1 if a limit is exceeded, 77 without Chromium
"""
import argparse
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "viz"))
from browser import chromium, errors, require_chromium  # noqa: E402

RUNS = 5
OPENS, DRAWS = 500, 16  # milliseconds
OPEN = "const n = performance.getEntriesByType('navigation')[0]; return n.loadEventEnd - n.startTime"
# Frames of a walk from node to node through the fully opened graph: each has boxes in it.
WALK = """
stage.view('all'); stage.openAll();
const times = [];
for (let i = 0; i < 60; ++i) {
  const r = stage.places().rectOf(Math.floor(data.count * (i + .5) / 60));
  piecewise.look(r.x + r.w / 2, r.y + r.h / 2, arguments[0]);
  times.push(piecewise.drawTime());
}
return times"""


# Steps through the passes and back, each with the camera on its changes, and drawn.
STEPS = """
const times = [], last = data.versions - 1;
stage.home();
for (let i = 0; i < 2 * last; ++i) {
  const v = i < last ? last - i : i - last + 1, begin = performance.now();
  showPass(v);
  stage.drawNow();
  times.push(performance.now() - begin);
}
return times"""


def measure(driver, path):
    opened = []
    for _ in range(RUNS):
        driver.get("about:blank")
        driver.get(path.as_uri())
        opened.append(driver.execute_script(OPEN))
    rows = {"opened": statistics.median(opened)}
    steps = driver.execute_script(STEPS)
    rows["step"], rows["step slowest"] = (statistics.median(steps), max(steps)) if steps else (0, 0)
    for name, zoom in (("texts", 1.0), ("boxes", 0.3), ("far", 0.05)):
        times = driver.execute_script(WALK, zoom)
        rows[name] = statistics.median(times)
        rows[name + " slowest"] = max(times)
    driver.execute_script("stage.fit()")
    rows["whole"] = statistics.median(driver.execute_script("return Array.from({ length: 9 }, () => piecewise.drawTime())"))
    assert not errors(driver)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--append", type=Path)
    given = parser.parse_args()
    require_chromium()
    lines = [
        "",
        "## In Chromium",
        "",
        "Headless, drawn by the processor; milliseconds. Opening: from the request to the load event, median of five. A frame: the",
        "median and the slowest of 60 nodes through the graph with every group open, at three zooms, and all of it at once. A step: the",
        "next pass is chosen, all panels are rebuilt, the camera moves, and the picture is drawn.",
        "",
        "| page | opens | step | frame, texts | frame, boxes | frame, far | frame, everything |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    broken = []
    pages = sorted(given.folder.resolve().glob("*.html"), key=lambda p: (int(p.stem.split("-")[0]), p.stem))
    driver = chromium()
    try:
        for path in pages:
            rows = measure(driver, path)
            frame = lambda name: f"{rows[name]:.1f} ({rows[name + ' slowest']:.1f})"  # noqa: E731
            lines.append(
                f"| {path.stem} | {rows['opened']:.0f} | {frame('step')} | {frame('texts')} | {frame('boxes')} | {frame('far')} | {rows['whole']:.1f} |"
            )
            if path.stem.startswith("20") and rows["opened"] > OPENS:
                broken.append(f"{path.stem} opens in {rows['opened']:.0f} ms, more than {OPENS}")
            if rows["step"] > DRAWS:
                broken.append(f"a step of {path.stem} takes {rows['step']:.1f} ms, more than {DRAWS}")
            if rows["texts"] > DRAWS or rows["boxes"] > DRAWS:
                broken.append(f"a frame of {path.stem} takes more than {DRAWS} ms")
    finally:
        driver.quit()
    lines += [
        "",
        f"Must hold: 20 000 nodes open within {OPENS} ms, a step and a zoomed frame take at most {DRAWS} ms: " + ("; ".join(broken) or "kept") + ".",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.append:
        with given.append.open("a", encoding="utf-8") as file:
            file.write(text)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
