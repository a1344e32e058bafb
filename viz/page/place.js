// The layout. A level contains sibling items: of the whole graph, or of an open group. Its sheet holds
// closed boxes; opening some stretches it like a rubber sheet, so that nothing overlaps and relative
// positions are preserved.

/// A spatial index of rectangles, for window queries.
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

/// Returns the path of an edge: from the bottom of one box through the lanes between to the top of
/// another. Straight parts and bends alternate.
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

/// Returns the path of a long edge without a lane: only its end, or all of it if selected.
const stub = (x, y) => [x, y - 14, x, y];

const frame = {
  side: data.raw.frame[0],
  top: data.raw.frame[1],
  bottom: data.raw.frame[2]
};
const itemKinds = ['group', 'node', 'input', 'output', 'source', 'leaf'];
/// Returns the items of a group without inner groups: ports on top, nodes, ports at the bottom.
function plainItems(shape) {
  const count = shape.folded.x.length, kind = new Array(count).fill(1), index = [];
  for (let i = 0; i < count; ++i) {
    const leaf = i - count + shape.leaves.length;
    if (i < shape.sources)
      kind[i] = 4;
    else if (leaf >= 0)
      kind[i] = 5;
    index.push(i < shape.sources ? i : leaf >= 0 ? leaf : i - shape.sources);
  }
  return {kind, index};
}
/// For each shape: the position of a node → the number of its bottom port.
const leavesOf = data.shapes.map(shape => new Map(shape.leaves.map((place, p) => [place, p])));

/// `group`: the group whose contents it shows, or −1; `view`: {folded, expanded, copy} of the state.
class Level {
  constructor(group, view) {
    this.group = group;
    this.view = view;
    this.shape = group < 0 ? data.raw.whole : data.shapes[data.groups[group].shape];
    this.depth = group < 0 ? 0 : data.groups[group].depth + 1;  // of the inner groups
    this.top = !view.folded && this.shape.unfolded || this.shape.folded;
    const items = this.top.kind ? this.top : plainItems(this.shape);
    this.items = [];
    this.itemOfGroup = new Map();
    this.itemOfNode = new Map();
    this.itemOfInput = new Map();
    this.itemOfOutput = new Map();
    this.sources = [];
    this.leaves = [];
    const children = group < 0 ? null : data.groups[group].children;
    for (let i = 0; i < this.top.x.length; ++i) {
      const kind = itemKinds[items.kind[i]],
            item = {kind, index: items.index[i], w: this.top.size[2 * i], h: this.top.size[2 * i + 1], inner: null};
      if (kind === 'group')
        this.putGroup(item, children ? children[item.index] : item.index, i);
      else if (kind === 'node') {
        if (group >= 0) item.index = data.groups[group].nodes[item.index];
        this.itemOfNode.set(item.index, i);
      } else if (kind === 'input')
        this.itemOfInput.set(item.index, i);
      else if (kind === 'output')
        this.itemOfOutput.set(item.index, i);
      else
        (kind === 'source' ? this.sources : this.leaves).push(i);
      this.items.push(item);
    }
    this.stretch();
  }

  putGroup(item, g, i) {
    const {folded, expanded, copy} = this.view, siblings = folded ? data.groups[g].siblings : [g];
    for (const one of siblings) this.itemOfGroup.set(one, i);
    item.index = folded ? copy[siblings[0]] : g;
    if (!siblings.some(one => expanded.has(data.groups[one].alike))) return;
    item.inner = new Level(item.index, this.view);
    item.w = item.inner.width;
    item.h = item.inner.height;
  }

  /// Returns true if most groups are open; then the layout with all groups open is used.
  opens() {
    if (!this.shape.opened || this.top !== this.shape.folded) return false;
    const groups = this.items.filter(item => item.kind === 'group');
    return 2 * groups.filter(item => item.inner).length > groups.length;
  }

  /// Stretches columns until each open group fits between its old left and right; ranks are as
  /// high as their highest item.
  stretch() {
    this.sheet = this.opens() ? this.shape.opened : this.top;
    const {x, size, rank} = this.sheet, items = this.items, spans = new Map();
    items.forEach((item, i) => {
      if (!item.inner) return;
      const l = x[i] - size[2 * i] / 2, r = l + size[2 * i], key = l + ' ' + r;
      spans.set(key, {l, r, w: Math.max(item.w, (spans.get(key) || {w: 0}).w)});
    });
    const X = this.X = stretched([...spans.values()]);
    const between = 30, whole = this.group < 0;
    const margin = whole ? 16 : frame.top;  // above, for edges to the next copy or the title; the same below
    this.rows = rowsOf(this.sheet);
    for (const row of this.rows) row.height = 0;
    items.forEach((item, i) => {
      const row = this.rows[rank[i]];
      row.height = Math.max(row.height, item.h);
    });
    let y = margin;
    for (const row of this.rows) {
      row.top = y;
      y += row.height + between;
    }
    const below = whole ? margin : frame.bottom;
    this.height = Math.max(0, y - between + below);
    this.width = this.wide = X(this.sheet.width);  // wide: of a column
    this.columns(margin, between, below);
    const side = whole ? 0 : frame.side;
    items.forEach((item, i) => {
      const row = this.rows[rank[i]], l = x[i] - size[2 * i] / 2;
      // Centers an open box in its stretched space, which may differ from the stretched center.
      item.cx = (item.inner ? (X(l) + X(l + size[2 * i])) / 2 : X(x[i])) + row.left + side;
      item.x = item.cx - item.w / 2;
      item.y = item.kind === 'source' ? 0 : item.kind === 'leaf' ? this.height : row.top + (row.height - item.h) / 2;
      item.rank = rank[i];
    });
    for (const row of this.rows) row.left += side;
    this.gutters = Math.min(12, this.top.next);  // at the side, for edges to the next copy
    this.width += 2 * side + (this.gutters ? 24 + 5 * this.gutters : 0);
  }

  /// Breaks a picture that is much taller than wide into columns, like newspaper text.
  columns(margin, between, below) {
    const tall = 4, gap = 80, wide = this.width + gap, count = Math.floor(Math.sqrt(1.6 * this.height / wide));
    for (const row of this.rows) row.left = 0, row.column = 0;
    if (this.height < tall * Math.max(wide, 600) || count < 2) return;
    const each = this.height / count;
    let column = 0, y = margin;
    this.height = 0;
    for (const row of this.rows) {
      if (y >= each + margin && column + 1 < count) ++column, y = margin;
      row.left = column * wide;
      row.column = column;
      row.top = y;
      y += row.height + between;
      this.height = Math.max(this.height, y - between + below);
    }
    this.width += column * wide;
  }

  /// Moves the level and its contents to its position in the picture.
  move(x, y) {
    this.x = x;
    this.y = y;
    for (const row of this.rows) row.top += y, row.left += x;
    for (const item of this.items) {
      item.x += x;
      item.cx += x;
      item.y += y;
      if (item.inner) item.inner.move(item.x, item.y);
    }
    return this;
  }

  /// Spatial indexes for window queries, created lazily.
  get grid() {
    if (this.grid_) return this.grid_;
    this.grid_ = new Grid(this.group < 0 ? 1024 : 400);
    this.items.forEach((item, i) => {
      if (item.kind !== 'source' && item.kind !== 'leaf')
        this.grid_.add(i, item.x, item.y, item.x + item.w, item.y + item.h);
    });
    return this.grid_;
  }
  get edges() { return this.edges_ || this.join(); }
  get edgeGrid() {
    this.edges;
    return this.edgeGrid_;
  }
  get edgesAt() {
    this.edges;
    return this.edgesAt_;
  }

  /// Returns the item that contains a node, or an input below zero; undefined if it is outside.
  itemOf(source) {
    if (source < 0) return this.itemOfInput.get(-1 - source);
    const level = data.groupAt[this.depth], g = level ? level[source] : -1;
    return g < 0 ? this.itemOfNode.get(source) : this.itemOfGroup.get(g);
  }
  holds(n) { return this.group < 0 || (n >= 0 && data.groupAt[this.depth - 1][n] === this.group); }
  /// Returns the position of a port of an item: inputs of a group on top, outputs at the bottom.
  port(item, at, bottom) {
    if (item.kind !== 'group') return item.cx;
    const inner = item.inner, shape = data.shapes[data.groups[item.index].shape],
          count = bottom ? shape.leaves.length : shape.sources;
    return inner ? inner.items[(bottom ? inner.leaves : inner.sources)[at]].cx :
                   item.x + item.w * (at + 1) / (count + 1);
  }

  /// Calls `act(from, to, first, last, a, outPort, b, inPort, value)` for each edge between two items:
  /// those of a group are between its items and its ports.
  eachLink(act) {
    const e = data.edges, depth = this.depth, level = data.groupAt[depth], whole = this.group < 0,
          inner = n => level && n >= 0 ? level[n] : -1;
    const leafOf = n => {
      const g = inner(n);
      return g < 0 ? 0 : leavesOf[data.groups[g].shape].get(data.placeIn(g, n)) || 0;
    };
    const enter = (i, to) => {
      const from = e.from[i], outside = !whole && !this.holds(from);
      if (!outside && inner(from) >= 0 && inner(from) === inner(to)) return;
      const a = outside ? this.sources[data.ports[depth - 1][i]] : this.itemOf(from);
      act(from, to, e.first[i], e.last[i], a, outside ? 0 : leafOf(from), this.itemOf(to),
          inner(to) >= 0 ? data.ports[depth][i] : 0, e.value[i]);
    };
    const leave = (n, first, last, value) => {
      const own = leavesOf[data.groups[this.group].shape].get(data.placeIn(this.group, n));
      act(n, -1, first, last, this.itemOf(n), leafOf(n), this.leaves[own], 0, value);
    };
    if (whole) {
      for (let i = 0; i < e.to.length; ++i) enter(i, e.to[i]);
      for (const o of data.outputs)
        if (data.isDrawn(o.value)) {
          const from = o.value < data.inputs.length ? -1 - o.value : data.valueNode[o.value];
          act(from, -1, o.first, o.last, this.itemOf(from), leafOf(from), this.itemOfOutput.get(o.slot), 0, o.value);
        }
      return;
    }
    for (const n of data.groups[this.group].nodes) {
      for (let i = data.edgeStart[n]; i < data.edgeStart[n + 1]; ++i) enter(i, n);
      for (const i of data.readers.get(n) || [])
        if (!this.holds(e.to[i])) leave(n, e.first[i], e.last[i], e.value[i]);
      for (const o of data.returned.get(n) || []) leave(n, o.first, o.last, o.value);
    }
  }

  /// Returns edges between items, each pair of ports once, with the versions that have any of the
  /// represented edges.
  join() {
    const lanes = new Map(), n = this.items.length, joined = new Map();
    for (const edge of edgesOf(this.sheet))
      if (edge.lanes.length) lanes.set(edge.from * n + edge.to, edge.lanes);
    this.edges_ = [];
    this.eachLink((source, reader, first, last, a, outPort, b, inPort, value) => {
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
      const edge = {a, b, outPort, inPort, life: [[first, last]], next: a >= b, source, reader, value};
      joined.get(out).set(into, edge);
      this.edges_.push(edge);
    });
    this.edgeGrid_ = new Grid(this.group < 0 ? 1024 : 400);
    this.edgesAt_ = new Map();  // item → its edges
    let gutters = 0;
    this.edges_.forEach((edge, i) => {
      const a = this.items[edge.a], b = this.items[edge.b], x0 = this.port(a, edge.outPort, true),
            x1 = this.port(b, edge.inPort, false), row0 = this.rows[a.rank], row1 = this.rows[b.rank],
            end0 = row0.top + row0.height, top1 = b.kind === 'leaf' ? row1.top + row1.height : row1.top;
      edge.far =
          !edge.next && (row0.column !== row1.column || (b.rank - a.rank > 1 && !lanes.has(edge.a * n + edge.b)));
      edge.whole = [x0, a.y + a.h, x0, end0, x1, top1, x1, b.y];
      if (edge.next) {  // around the items of its column, on a separate path
        const side = Math.max(row0.left, row1.left) + this.wide + 16 + 5 * (gutters++ % Math.max(1, this.gutters));
        edge.points = edge.whole =
            [x0, a.y + a.h, x0, end0 + 4, side, end0 + 4, side, row1.top - 8, x1, row1.top - 8, x1, b.y];
      } else if (edge.far)
        edge.points = stub(x1, b.y);
      else
        edge.points = edge.whole = route(
            x0, a.y + a.h, end0, (lanes.get(edge.a * n + edge.b) || []).map(x => this.X(x) + row0.left), this.rows,
            a.rank, x1, top1, b.y);
      this.edgeGrid_.add(i, ...bounds(edge.points));
      for (const end of new Set([edge.a, edge.b])) {
        const list = this.edgesAt_.get(end);
        if (list)
          list.push(i);
        else
          this.edgesAt_.set(end, [i]);
      }
    });
    return this.edges_;
  }

  /// Returns where a node is drawn: the levels from the outside in, each with its item. The last is
  /// its own box, that of its counterpart in the visible copy, or its closed group.
  find(n) {
    const out = [];
    for (let level = this; level;) {
      const i = level.itemOf(n);
      if (i === undefined) return null;
      const item = level.items[i];
      out.push({level, i, item, node: n});
      if (item.kind === 'group' && item.inner)
        n = data.groups[item.index].nodes[data.placeIn(data.groupAt[level.depth][n], n)];
      level = item.inner;
    }
    return out;
  }
  findGroup(g) {
    const way = this.find(data.groups[g].nodes[0]);
    return way ? way[Math.min(way.length - 1, data.groups[g].depth)] : null;
  }
  /// Returns the rectangle of a node, a group, an input or an output, or of its container.
  rectOf(n) {
    const way = this.find(n);
    return way && way[way.length - 1].item;
  }
  rectOfGroup(g) {
    const found = this.findGroup(g);
    return found && found.item;
  }

  /// Calls `act(item, level)` for all items in it and in its open groups, without ports.
  each(act) {
    for (const item of this.items) {
      if (item.kind === 'source' || item.kind === 'leaf') continue;
      act(item, this);
      if (item.inner) item.inner.each(act);
    }
  }
  /// Returns true if one of its edges has no path.
  get cut() { return this.rows.some(row => row.column) || isCut(this.sheet); }
  some(test) { return test(this) || this.items.some(item => item.inner && item.inner.some(test)); }
  /// Returns the number of nodes with a visible box, and of all nodes.
  shown(drawn, there) {
    let shown = 0, all = 0;
    this.each(item => {
      if (item.kind === 'node' && drawn(item.index)) ++shown;
    });
    for (let n = 0; n < data.count; ++n)
      if (there(n)) ++all;
    return {shown, all};
  }
  /// Returns the item at a position: { node }, { group }, { input } or { output }.
  at(x, y) {
    let found = null;
    this.grid.query(x, y, x, y, i => {
      const item = this.items[i];
      if (x < item.x || x > item.x + item.w || y < item.y || y > item.y + item.h) return;
      found = item.inner && item.inner.at(x, y) || {[item.kind]: item.index};
    });
    return found;
  }
}
const isCut = sheet => {
  if (sheet.cut === undefined)
    sheet.cut = edgesOf(sheet).some(e => !e.lanes.length && sheet.rank[e.to] - sheet.rank[e.from] > 1);
  return sheet.cut;
};
/// Maps coordinates so that each span has its requested width, and order is preserved.
function stretched(spans) {
  const stops = [...new Set(spans.flatMap(s => [s.l, s.r]))].sort((a, b) => a - b),
        widths = stops.slice(1).map((x, i) => x - stops[i]), index = new Map(stops.map((x, i) => [x, i]));
  for (const span of spans) {
    const a = index.get(span.l), b = index.get(span.r);
    let now = 0;
    for (let i = a; i < b; ++i) now += widths[i];
    if (now < span.w)
      for (let i = a; i < b; ++i) widths[i] *= span.w / now;
  }
  const at = [stops.length ? stops[0] : 0];
  for (const w of widths) at.push(at[at.length - 1] + w);
  return x => {
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
}
