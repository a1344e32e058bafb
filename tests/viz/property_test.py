#!/usr/bin/python3
"""Properties of every page, for any graph: no removed node is drawn, no box overlaps another or leaves the
picture, edges go down except those to the next copy of a group that is drawn once, and passes add up.

    property_test.py [--generated N] [--folder DIR]...     exit code 1 if a property fails, 77 without Chromium

Without a folder: generated graphs through random rules, generated decoders, the examples, and the dumps of the shared data.
"""
import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import BIN, SHARED, chromium, errors, require_chromium  # noqa: E402

RULES = """
op pair(x: T[*s], z: T[*s], w: T[*s]) -> (u: T[*s], t: T[*s])
op cut(x: T[*s]){k: int = 0} -> y: T[*s] splitting
rule a {
  y = relu(exp(x))
  =>
  y = tanh(x)
}
rule b {
  t = add(x, z)
  u = mul(t, w)
  =>
  u, t = pair(x, z, w)
}
rule c {
  y = neg(neg(x))
  =>
  y = x
}
rule d {
  y = add(x, x)
  =>
  y = mul(x, 2.0)
}
rule e {
  y = cut(x){k = 1}
  =>
  y = cut(exp(x)){k = 2}
}
rule f {
  y = silu(x)
  =>
  y = mul(x, sigmoid(x))
}
pipeline p {
  once { a }
  walk { b, c }
  once { d, e }
  walk { f }
  dce
}
"""

# In the page, since a drawing has many numbers: what is wrong with it, as sentences.
CHECK = """
const problems = [], most = 40, slack = 1.5;
const say = words => { if (problems.length < most && !problems.includes(words)) problems.push(words); };
const over = (a, b) => a.x < b.x + b.w - slack && b.x < a.x + a.w - slack && a.y < b.y + b.h - slack && b.y < a.y + a.h - slack;
let base = 0, now = 0;
const lives = n => [base, now].some(v => data.first[n] <= v && v <= data.last[n]);
function check(where) {
  const {boxes, edges, width, height} = drawing(), byNode = new Map();
  const inside = (x, y) => x >= -slack && x <= width + slack && y >= -slack && y <= height + slack;
  const families = new Map();
  for (const box of boxes) {
    if (![box.x, box.y, box.w, box.h].every(Number.isFinite) || box.w <= 0) say(where + ': a box has no place');
    if (!inside(box.x, box.y) || !inside(box.x + box.w, box.y + box.h)) say(where + ': a box is outside the picture');
    if (!families.has(box.inside)) families.set(box.inside, []);
    families.get(box.inside).push(box);
    if (box.kind === 'node') {
      byNode.set(box.index, box);
      if (box.state !== 'off' && !lives(box.index)) say(where + ': a node that is gone is drawn as ' + box.state);
    }
    if (box.inside < 0) continue;
    const frame = boxes[box.inside];
    if (box.x < frame.x || box.y < frame.y || box.x + box.w > frame.x + frame.w || box.y + box.h > frame.y + frame.h)
      say(where + ': a node is outside its group');
  }
  for (const family of families.values()) {
    family.sort((a, b) => a.y - b.y);
    for (let i = 0; i < family.length; ++i)
      for (let k = i + 1; k < family.length && family[k].y < family[i].y + family[i].h; ++k)
        if (over(family[i], family[k])) say(where + ': a box overlaps another');
  }
  for (const edge of edges) {
    if (!edge.points.every(Number.isFinite)) say(where + ': an edge has no place');
    for (let i = 0; i < edge.points.length; i += 2)
      if (!inside(edge.points[i], edge.points[i + 1])) { say(where + ': an edge leaves the picture'); break; }
    for (const n of [edge.from, edge.to])
      if (n >= 0) {
        const live = v => data.first[n] <= v && v <= data.last[n];
        if (edge.state === 'plain' && !(live(base) && live(now))) say(where + ': an edge outlives ' + data.name(n));
        if (edge.state === 'added' && !live(now)) say(where + ': an added edge of a node that is gone');
        if (edge.state === 'removed' && !live(base)) say(where + ': a removed edge of a node that was not there');
      }
    const begin = edge.points[1], end = edge.points[edge.points.length - 1];
    if (edge.next) {
      const group = data.groups[edge.toGroup];
      if (!(app.state.folded && group && group.siblings.length > 1))
        say(where + ': an edge goes up, and not to the next copy of anything');
      if (document.querySelector('.legend').textContent.indexOf('next copy') < 0) say(where + ': no legend for an edge that goes up');
      continue;
    }
    if (!(end > begin)) say(where + ': an edge goes up');
    for (let i = 3; i < edge.points.length; i += 2)
      if (edge.points[i] < edge.points[i - 2] - slack) { say(where + ': an edge turns back'); break; }
    // A drawn edge begins and ends at boxes that are drawn.
    if (edge.from >= 0 && edge.inside >= 0 && !byNode.has(edge.from)) say(where + ': an edge begins at nothing');
    if (edge.to >= 0 && edge.inside >= 0 && !byNode.has(edge.to)) say(where + ': an edge ends at nothing');
  }
}
function pieces() {
  // Removed nodes are in a group of their own kind: an op that splits is in no captured piece.
  for (let n = 0; n < data.count; ++n) {
    const g = data.groupOf[n];
    if (g >= 0 && data.kind(n) === 'splitting' && data.groups[g].kind === 'captured') say(data.name(n) + ' splits, and is in a captured piece');
  }
}
function sums() {
  data.steps.forEach((s, i) => {
    if (i && s.nodes !== data.steps[i - 1].nodes + s.added - s.removed) say('pass ' + s.pass + ' does not add up');
    let alive = 0;
    for (let n = 0; n < data.count; ++n) if (data.first[n] <= i && i <= data.last[n]) ++alive;
    if (alive !== s.nodes) say('pass ' + s.pass + ' has ' + alive + ' nodes, not ' + s.nodes);
  });
}
const last = data.versions - 1, pairs = [[0, last]];
for (let v = 1; v <= last; ++v) if (!data.steps[v].hidden) pairs.push([v - 1, v]);
let drawings = 0;
sums();
pieces();
for (const view of ['graph', 'overview', ...(data.raw.unfolded ? ['all'] : [])]) {
  stage.view(view);
  for (const [from, to] of pairs) {
    app.change({base: from, now: to});
    base = from, now = to;
    ++drawings;
    check(view + " " + from + " → " + to);
  }
}
stage.fit();
const p = stage.places(), [x0, y0] = stage.picture.toWorld(0, 0), [x1, y1] = stage.picture.toWorld(stage.picture.width, stage.picture.height);
if (x0 > 0 || y0 > 0 || x1 < p.width || y1 < p.height) say('fitting all does not fit all');
// The opening view is readable and shows a change.
stage.view('graph');
app.change({base: 0, now: last});
stage.home();
if (camera.k < 10 / 11 - 1e-6) say('it opens at a zoom of ' + camera.k);
return {problems, drawings, depth: data.groups.reduce((most, group) => Math.max(most, group.depth), 0)};
"""


# Faults planted in a page: each must be found.
FAULTS = {
    "a box overlaps another": "for (const level of [data.raw.whole, ...data.shapes]) for (const sheet of [level.folded, level.opened]) if (sheet) { sheet.x.fill(sheet.x[0]); sheet.rank.fill(0); }",
    "an edge outlives": "Level.prototype.join = (join => function() { const edges = join.call(this); for (const edge of edges) edge.life = [[0, data.versions - 1]]; return edges; })(Level.prototype.join);",
    "an edge goes up": "Level.prototype.stretch = (stretch => function() { stretch.call(this); for (const item of this.items) item.y = this.height - item.y - item.h; })(Level.prototype.stretch);",
    "is outside the picture": "Level.prototype.stretch = (stretch => function() { stretch.call(this); this.width /= 2; })(Level.prototype.stretch);",
    "a node is outside its group": "Level.prototype.move = (move => function(x, y) { return move.call(this, x + (this.group < 0 ? 0 : this.width), y); })(Level.prototype.move);",
    "does not add up": "data.steps[1].added += 1;",
    "is in a captured piece": "data.groups.forEach(group => { if (group.kind === 'eager') group.kind = 'captured'; });",
    "it opens at a zoom": "stage.home = () => { camera.k = .3; };",
    "fitting all": "stage.fit = () => { camera.k = 8; };",
}


def faults(driver, page):
    """Returns the planted faults that the check does not find."""
    missed = []
    for words, fault in FAULTS.items():
        driver.get("about:blank")
        driver.get(page)
        driver.execute_script(fault)
        if not any(words in problem for problem in driver.execute_script(CHECK)["problems"]):
            missed.append(words)
    return missed


def generated(number, seed):
    """A graph of ops that the rules rewrite, some of which split, as .pwg."""
    random_ = random.Random(seed)
    values, lines = ["x0", "x1"], []
    count = random_.randint(1, 60)
    for i in range(count):
        op = random_.choice(["exp", "relu", "neg", "neg", "silu", "tanh", "add", "add", "mul", "cut", "pair"])
        near = values[-8:] if random_.random() < 0.8 else values
        pick = lambda: random_.choice(near)  # noqa: E731
        if op in ("add", "mul"):
            lines.append(f"  v{i} = {op}({pick()}, {pick()})")
        elif op == "cut":
            lines.append(f"  v{i} = cut({pick()}){{k = {random_.choice([0, 1])}}}")
        elif op == "pair":
            lines.append(f"  v{i}, w{i} = pair({pick()}, {pick()}, {pick()})")
            values.append(f"w{i}")
        else:
            lines.append(f"  v{i} = {op}({pick()})")
        values.append(f"v{i}")
    outputs = random_.sample(values[2:], min(len(values) - 2, random_.randint(1, 4)))
    if values[-1] not in outputs:
        outputs.append(values[-1])
    return "\n".join(
        [
            f"graph g{number} {{",
            "  symbol n in 1..4096 tokens",
            "  in x0: bf16[n, 64], x1: bf16[n, 64]",
            *lines,
            "  out " + ", ".join(outputs),
            "}",
            "",
        ]
    )


def nested(number, seed):
    """Stages of equal blocks of equal experts, with names as module paths; some nodes are named, or read, out of place."""
    random_ = random.Random(seed)
    lines, values, x, count = [], ["x0", "x1"], "x0", 0
    stray = random_.choice([0, 0, 0.05, 0.2])

    def put(text, path):
        nonlocal count
        count += 1
        if random_.random() < stray:
            path = random_.choice(["", "stages.0", "stages.1.blocks.0", path + ".extra", "other"])
        lines.append(f"  v{count} = {text}" + (f' @ "{path}"' if path else ""))
        values.append(f"v{count}")
        return f"v{count}"

    one, two = random_.choice(["exp", "silu", "neg"]), random_.choice(["relu", "neg", "tanh"])
    blocks, experts = random_.randint(1, 4), random_.randint(1, 4)
    for stage in range(random_.randint(1, 3)):
        for block in range(blocks):
            path = f"stages.{stage}.blocks.{block}"
            x = put(f"{one}({x})", f"{path}.norm")
            x = put(f"{two}({x})", f"{path}.norm")
            if random_.random() < 0.5:
                x = put(f"cut({x}){{k = {block % 2}}}", f"{path}.cut")
            total = x
            for expert in range(experts):
                inner = f"{path}.moe.experts.{expert}"
                y = put(f"{two}({x if random_.random() > stray else random_.choice(values)})", inner)
                y = put(f"{one}({y})", inner)
                total = put(f"add({total}, {put(f'mul({y}, x1)', inner)})", f"{path}.moe")
            x = total
    return "\n".join([f"graph m{number} {{", "  symbol n in 1..4096 tokens", "  in x0: bf16[n, 64], x1: bf16[n, 64]", *lines, f"  out {x}", "}", ""])


def cases(count, folder):
    """Name and arguments of pwviz."""
    rules = folder / "rules.pwr"
    rules.write_text(RULES, encoding="utf-8")
    seed = int(os.environ.get("PW_SEED", "1"))
    for i in range(count):
        path = folder / f"g{i}.pwg"
        path.write_text((nested if i % 4 == 2 else generated)(i, seed * 1000 + i), encoding="utf-8")
        arguments = [path, "-r", rules, "-p", "p"]
        if i % 5 == 4:  # two graphs that are matched by what they are, not rewritten
            other = folder / f"h{i}.pwg"
            other.write_text(generated(i, seed * 1000 + i + 1), encoding="utf-8")
            arguments = [path, other, "-r", rules]
        yield f"generated {seed * 1000 + i}", arguments
    yield "tiny decoder", ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0", "-r", "llm", "-p", "o2"]
    fx = SHARED / "fx"
    if not fx.exists():
        print(f"SKIPPED: no dumps at {fx}", file=sys.stderr)
    for path in sorted(fx.rglob("*.txt")):
        yield str(path.relative_to(fx)), [path, "-r", "llm", "-p", "o2", "-D", f"tp={2 if 'tp2' in str(path) else 1}"]


def of_folder(folder):
    for path in sorted(folder.rglob("*.fx.txt")):
        yield str(path.relative_to(folder)), [path, "-r", "llm", "-p", "o2"]


def main():
    import subprocess

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", type=int, default=60)
    parser.add_argument("--folder", type=Path, action="append", default=[])
    given = parser.parse_args()
    require_chromium()
    broken, pages, drawings, unread, begin = [], 0, 0, [], time.monotonic()
    deep = 0  # pages with groups in groups
    driver = chromium()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            page = folder / "page.html"
            todo = [case for f in given.folder for case in of_folder(f)] if given.folder else cases(given.generated, folder)
            for title, arguments in todo:
                done = subprocess.run([str(BIN / "pwviz"), *map(str, arguments), "-q", "-o", str(page)], capture_output=True, text=True, check=False)
                if done.returncode == 3:  # what the importer refuses is not a picture's matter
                    unread.append(title)
                    continue
                if done.returncode:
                    broken.append(f"{title}: pwviz ended with {done.returncode}: {done.stderr.strip()[:300]}")
                    continue
                driver.get("about:blank")
                driver.get(page.as_uri())
                found = driver.execute_script(CHECK)
                pages, drawings, deep = pages + 1, drawings + found["drawings"], deep + (found["depth"] > 0)
                broken += [f"{title}: {problem}" for problem in found["problems"] + errors(driver)]
                if title == "tiny decoder":
                    broken += [f"the check does not find: {words}" for words in faults(driver, page.as_uri())]
    finally:
        driver.quit()
    for line in broken:
        print(line)
    if not given.folder and deep < given.generated // 8:
        broken.append(f"only {deep} pages have groups in groups")
    print(
        f"{pages} pages, {deep} of them with groups in groups, {drawings} drawings, {len(broken)} problems, {len(unread)} files without a graph: {time.monotonic() - begin:.0f} s"
    )
    if unread:
        print("no graph: " + json.dumps(unread))
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
