// Where everything stands. A top sheet holds closed boxes; opening some stretches it like a rubber
// sheet, so that nothing overlaps and what stood left, right, above or below stays there.

/// Rectangles by place: what touches a window is found without looking at the rest.
class Grid {
  constructor(cell) {
    this.cell = cell;
    this.cells = new Map();
    this.stamp = [];
    this.round = 0;
  }
  add(id, x0, y0, x1, y1) {
    this.stamp[id] = 0;
    for (let i = Math.floor(x0 / this.cell); i <= Math.floor(x1 / this.cell); ++i)
      for (let j = Math.floor(y0 / this.cell); j <= Math.floor(y1 / this.cell); ++j) {
        const key = i * 4194304 + j, list = this.cells.get(key);
        if (list)
          list.push(id);
        else
          this.cells.set(key, [id]);
      }
  }
  query(x0, y0, x1, y1, act) {
    const round = ++this.round, i0 = Math.floor(x0 / this.cell), i1 = Math.floor(x1 / this.cell),
          j0 = Math.floor(y0 / this.cell), j1 = Math.floor(y1 / this.cell);
    const visit = list => {
      for (const id of list)
        if (this.stamp[id] !== round) {
          this.stamp[id] = round;
          act(id);
        }
    };
    if ((i1 - i0 + 1) * (j1 - j0 + 1) > this.cells.size) {
      for (const list of this.cells.values()) visit(list);
      return;
    }
    for (let i = i0; i <= i1; ++i)
      for (let j = j0; j <= j1; ++j) {
        const list = this.cells.get(i * 4194304 + j);
        if (list) visit(list);
      }
  }
}

/// The way of an edge: from the bottom of one box through the lanes of the ranks between to the top
/// of another. A straight part, a bend, a straight part, and so on.
function route(x0, y0, bottom0, lanes, rows, rank0, x1, top1, y1) {
  const out = [x0, y0, x0, bottom0];
  for (let k = 0; k < lanes.length; ++k) {
    const row = rows[rank0 + 1 + k];
    out.push(lanes[k], row.top, lanes[k], row.top + row.height);
  }
  out.push(x1, top1, x1, y1);
  return out;
}
function bounds(points) {
  let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
  for (let i = 0; i < points.length; i += 2) {
    x0 = Math.min(x0, points[i]);
    x1 = Math.max(x1, points[i]);
    y0 = Math.min(y0, points[i + 1]);
    y1 = Math.max(y1, points[i + 1]);
  }
  return [x0, y0, x1, y1];
}
const rowsOf = sheet => {
  const out = [];
  for (let i = 0; i < sheet.rows.length; i += 2) out.push({top: sheet.rows[i], height: sheet.rows[i + 1]});
  return out;
};
function edgesOf(sheet) {
  const out = [];
  for (let i = 0; i < sheet.edges.length;) {
    const [from, to, first, last, k] = sheet.edges.slice(i, i + 5);
    out.push({from, to, first, last, lanes: sheet.edges.slice(i + 5, i + 5 + k)});
    i += 5 + k;
  }
  return out;
}

/// The way of an edge over several ranks that has no lane: its end only, and, once chosen, all of it.
const stub = (x, y) => [x, y - 14, x, y];

/// A shape: boxes and edges of its nodes relative to its upper left corner.
const frame = {
  side: data.raw.frame[0],
  top: data.raw.frame[1],
  bottom: data.raw.frame[2]
};
class ShapePlaces {
  constructor(shape) {
    const rows = rowsOf(shape), nodes = shape.x.length - shape.sources - shape.leaves.length;
    this.count = nodes;
    this.width = shape.width + 2 * frame.side;
    this.height = shape.height + frame.top + frame.bottom;
    this.ports = shape.x.slice(nodes).map(x => x + frame.side);  // sources on top, then leaves at the bottom
    this.sources = shape.sources;
    this.leafOf = new Map(shape.leaves.map((place, p) => [place, p]));
    const shifted = rows.map(row => ({top: row.top + frame.top, height: row.height}));
    this.boxes = [];
    this.grid = new Grid(400);
    for (let k = 0; k < nodes; ++k) {
      const w = shape.size[2 * k], h = shape.size[2 * k + 1], row = shifted[shape.rank[k]];
      const box = {x: shape.x[k] + frame.side - w / 2, y: row.top + (row.height - h) / 2, w, h};
      this.boxes.push(box);
      this.grid.add(k, box.x, box.y, box.x + w, box.y + h);
    }
    this.edgeGrid = new Grid(400);
    this.edges = edgesOf(shape).map((edge, e) => {
      const end = i => i < nodes ? this.boxes[i] : null, a = end(edge.from), b = end(edge.to), rank = shape.rank;
      const x = i => shape.x[i] + frame.side, row = i => shifted[rank[i]];
      const far = rank[edge.to] - rank[edge.from] > 1 && !edge.lanes.length;
      const whole = route(
          x(edge.from), a ? a.y + a.h : 0, a ? row(edge.from).top + row(edge.from).height : row(edge.from).top,
          edge.lanes.map(l => l + frame.side), shifted, rank[edge.from], x(edge.to),
          b ? row(edge.to).top : row(edge.to).top + row(edge.to).height, b ? b.y : this.height);
      const points = far ? stub(x(edge.to), b ? b.y : this.height) : whole;
      this.edgeGrid.add(e, ...bounds(points));
      return {...edge, far, points, whole};
    });
  }
}
const shapePlaces = (() => {
  const made = [];
  return s => made[s] || (made[s] = new ShapePlaces(data.shapes[s]));
})();

/// A top sheet with some of its groups open.
class Places {
  constructor(top, folded, expanded, copy) {
    this.top = top;
    this.folded = folded;
    this.copy = copy;
    const n = top.kind.length, opened = this.opens(expanded);
    this.x = opened ? data.raw.opened.x : top.x;
    this.size = opened ? data.raw.opened.size : top.size;
    this.sheet = opened ? data.raw.opened : top;
    this.items = [];
    this.itemOfGroup = new Int32Array(data.groups.length).fill(-1);
    this.itemOfNode = new Map();
    this.itemOfInput = new Map();
    this.itemOfOutput = new Map();
    for (let i = 0; i < n; ++i) {
      const kind = ['group', 'node', 'input', 'output'][top.kind[i]], index = top.index[i];
      const item = {kind, index, w: top.size[2 * i], h: top.size[2 * i + 1], open: false};
      if (kind === 'group') {
        const shape = data.groups[index].shape;
        for (const g of folded ? data.copies[shape] : [index]) this.itemOfGroup[g] = i;
        if (folded) item.index = copy[shape];
        if (folded ? data.copies[shape].some(g => expanded.has(g)) : expanded.has(index)) {
          const inner = shapePlaces(shape);
          item.open = true;
          item.w = inner.width;
          item.h = inner.height;
        }
      } else if (kind === 'node')
        this.itemOfNode.set(index, i);
      else if (kind === 'input')
        this.itemOfInput.set(index, i);
      else
        this.itemOfOutput.set(index, i);
      this.items.push(item);
    }
    this.stretch();
    this.grid = new Grid(1024);
    this.items.forEach((item, i) => this.grid.add(i, item.x, item.y, item.x + item.w, item.y + item.h));
    this.join();
  }

  /// Whether most of the folded groups are open: then the places are those of a layout in which all are.
  opens(expanded) {
    if (this.top !== data.raw.folded) return false;
    const groups = this.top.index.filter((_, i) => this.top.kind[i] === 0);
    const open = groups.filter(g => data.copies[data.groups[g].shape].some(c => expanded.has(c)));
    return 2 * open.length > groups.length;
  }

  /// Columns are stretched until each open group has room between its old left and right; ranks
  /// are as high as their highest.
  stretch() {
    const top = this.sheet, items = this.items, spans = new Map();
    items.forEach((item, i) => {
      if (!item.open) return;
      const l = this.x[i] - this.size[2 * i] / 2, r = l + this.size[2 * i], key = l + ' ' + r;
      spans.set(key, {l, r, w: Math.max(item.w, (spans.get(key) || {w: 0}).w)});
    });
    const stops = [...new Set([...spans.values()].flatMap(s => [s.l, s.r]))].sort((a, b) => a - b),
          widths = stops.slice(1).map((x, i) => x - stops[i]);
    for (const span of spans.values()) {
      const a = stops.indexOf(span.l), b = stops.indexOf(span.r);
      let now = 0;
      for (let i = a; i < b; ++i) now += widths[i];
      if (now < span.w)
        for (let i = a; i < b; ++i) widths[i] *= span.w / now;
    }
    const at = [stops.length ? stops[0] : 0];
    for (const w of widths) at.push(at[at.length - 1] + w);
    const X = x => {
      if (!stops.length || x <= stops[0]) return x;
      const end = stops.length - 1;
      if (x >= stops[end]) return x - stops[end] + at[end];
      let i = 0, j = end;
      while (j - i > 1) {
        const m = (i + j) >> 1;
        if (stops[m] <= x)
          i = m;
        else
          j = m;
      }
      return at[i] + (x - stops[i]) / (stops[j] - stops[i]) * (at[j] - at[i]);
    };
    const between = 30;
    this.rows = rowsOf(top);
    for (const row of this.rows) row.height = 0;
    items.forEach((item, i) => {
      const row = this.rows[top.rank[i]];
      row.height = Math.max(row.height, item.h);
    });
    const margin = 16;  // above and below, for edges to the next copy
    let y = margin;
    for (const row of this.rows) {
      row.top = y;
      y += row.height + between;
    }
    this.height = Math.max(0, y - between + margin);
    this.width = X(top.width);
    this.columns(margin, between);
    items.forEach((item, i) => {
      const row = this.rows[top.rank[i]];
      // An open box in the middle of what was stretched for it, which need not be where the middle went.
      const l = this.x[i] - this.size[2 * i] / 2;
      item.cx = item.open ? (X(l) + X(l + this.size[2 * i])) / 2 : X(this.x[i]);
      item.cx += row.left;
      item.x = item.cx - item.w / 2;
      item.y = row.top + (row.height - item.h) / 2;
      item.rank = top.rank[i];
    });
    this.X = X;
  }

  /// A picture that is much taller than wide stands in columns, as the text of a newspaper does.
  columns(margin, between) {
    const tall = 4, gap = 80, wide = this.width + gap, count = Math.floor(Math.sqrt(1.6 * this.height / wide));
    for (const row of this.rows) row.left = 0, row.column = 0;
    if (this.height < tall * Math.max(wide, 600) || count < 2) return;
    const each = this.height / count;
    let column = 0, y = margin;
    this.height = 0;
    for (const row of this.rows) {
      if (y > margin && y + row.height > each + margin && column + 1 < count) ++column, y = margin;
      row.left = column * wide;
      row.column = column;
      row.top = y;
      y += row.height + between;
      this.height = Math.max(this.height, y - between + margin);
    }
    this.width += column * wide;
  }

  itemOf(source) {  // a node, or an input below zero
    if (source < 0) return this.itemOfInput.get(-1 - source);
    const g = data.groupOf[source];
    return g < 0 ? this.itemOfNode.get(source) : this.itemOfGroup[g];
  }
  /// Where a port of an item is: the sources of a group on top, what leaves it at the bottom.
  port(item, at, bottom) {
    if (item.kind !== 'group') return item.cx;
    const inner = shapePlaces(data.groups[item.index].shape), leaves = inner.ports.length - inner.sources;
    if (item.open) return item.x + inner.ports[bottom ? inner.sources + at : at];
    return item.x + item.w * (at + 1) / ((bottom ? leaves : inner.sources) + 1);
  }

  /// Edges between items, each pair of ports once, with the versions in which one of the edges
  /// that it stands for is there.
  join() {
    const lanes = new Map(), n = this.items.length, joined = new Map();
    for (const edge of edgesOf(this.sheet))
      if (edge.lanes.length) lanes.set(edge.from * n + edge.to, edge.lanes);
    this.edges = [];
    const note = (from, to, first, last, inPort, value) => {
      const a = this.itemOf(from), b = typeof to === 'string' ? this.itemOfOutput.get(+to) : this.itemOf(to);
      const g = from < 0 ? -1 : data.groupOf[from], h = typeof to === 'string' ? -1 : data.groupOf[to];
      const outPort = g < 0 ? 0 : shapePlaces(data.groups[g].shape).leafOf.get(data.placeOf[from]) || 0;
      const out = a * 2097152 + outPort, into = b * 2097152 + inPort;
      if (!joined.has(out)) joined.set(out, new Map());
      const before = joined.get(out).get(into);
      if (before) {
        const life = before.life[before.life.length - 1];
        if (first <= life[1] + 1 && life[0] <= last + 1) {
          life[0] = Math.min(life[0], first);
          life[1] = Math.max(life[1], last);
        } else
          before.life.push([first, last]);
        return;
      }
      const edge = {a, b, outPort, inPort, life: [[first, last]], next: a >= b, source: from, value};
      joined.get(out).set(into, edge);
      this.edges.push(edge);
    };
    const e = data.edges;
    for (let i = 0; i < e.to.length; ++i) {
      if (e.from[i] >= 0 && data.groupOf[e.from[i]] >= 0 && data.groupOf[e.from[i]] === data.groupOf[e.to[i]]) continue;
      note(e.from[i], e.to[i], e.first[i], e.last[i], e.port[i], e.value[i]);
    }
    for (const o of data.outputs)
      if (data.isDrawn(o.value))
        note(
            o.value < data.inputs.length ? -1 - o.value : data.valueNode[o.value], String(o.slot), o.first, o.last, 0,
            o.value);
    this.edgeGrid = new Grid(1024);
    this.edgesAt = new Map();  // item → its edges
    const inner = this.width;
    let gutters = 0;
    this.edges.forEach((edge, i) => {
      const a = this.items[edge.a], b = this.items[edge.b], x0 = this.port(a, edge.outPort, true),
            x1 = this.port(b, edge.inPort, false);
      const row0 = this.rows[a.rank], row1 = this.rows[b.rank];
      edge.far =
          !edge.next && (row0.column !== row1.column || (b.rank - a.rank > 1 && !lanes.has(edge.a * n + edge.b)));
      if (edge.next) {  // around all that is drawn, on a way of its own
        const side = inner + 16 + 5 * (gutters++ % 12);
        this.width = Math.max(this.width, side + 8);
        edge.points = [
          x0, a.y + a.h, x0, row0.top + row0.height + 4, side, row0.top + row0.height + 4, side, row1.top - 8, x1,
          row1.top - 8, x1, b.y
        ];
      } else if (edge.far) {
        edge.points = stub(x1, b.y);
        edge.whole = [x0, a.y + a.h, x0, row0.top + row0.height, x1, row1.top, x1, b.y];
      } else {
        edge.points = route(
            x0, a.y + a.h, row0.top + row0.height,
            (lanes.get(edge.a * n + edge.b) || []).map(x => this.X(x) + row0.left), this.rows, a.rank, x1, row1.top,
            b.y);
      }
      this.edgeGrid.add(i, ...bounds(edge.points));
      for (const end of [edge.a, edge.b]) {
        const list = this.edgesAt.get(end);
        if (list)
          list.push(i);
        else
          this.edgesAt.set(end, [i]);
      }
    });
  }

  /// The rectangle of a node: its own box, or the closed group that holds it.
  rectOf(n) {
    const i = this.itemOf(n);
    if (i === undefined || i < 0) return null;
    const item = this.items[i];
    if (item.kind !== 'group' || !item.open) return item;
    const box = shapePlaces(data.groups[item.index].shape).boxes[data.placeOf[n]];
    return {x: item.x + box.x, y: item.y + box.y, w: box.w, h: box.h};
  }
  /// How many nodes have a box of their own that is drawn, and how many there are.
  shown(drawn, there) {
    let shown = 0, all = 0;
    const note = n => {
      if (drawn(n)) ++shown;
    };
    for (const item of this.items)
      if (item.kind === 'node')
        note(item.index);
      else if (item.open)
        data.groups[item.index].nodes.forEach(note);
    for (let n = 0; n < data.count; ++n)
      if (there(n)) ++all;
    return {shown, all};
  }
  /// What is at a place: { node }, { group }, { input } or { output }.
  at(x, y) {
    let found = null;
    this.grid.query(x, y, x, y, i => {
      const item = this.items[i];
      if (x < item.x || x > item.x + item.w || y < item.y || y > item.y + item.h) return;
      found = {[item.kind]: item.index};
      if (!item.open) return;
      const inner = shapePlaces(data.groups[item.index].shape);
      inner.grid.query(x - item.x, y - item.y, x - item.x, y - item.y, k => {
        const box = inner.boxes[k];
        if (x - item.x >= box.x && x - item.x <= box.x + box.w && y - item.y >= box.y && y - item.y <= box.y + box.h)
          found = {node: data.groups[item.index].nodes[k]};
      });
    });
    return found;
  }
}
