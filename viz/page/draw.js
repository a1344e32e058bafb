// One picture on a canvas: a camera over the places, drawn at one version. Only what the window
// shows is drawn, and with less detail the smaller it is.

const ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name
           of ['ink', 'soft', 'paper', 'line', 'node', 'product', 'splitting', 'io', 'captured', 'stripe1', 'stripe2',
               'layer', 'added', 'removed', 'changed', 'matched', 'green'])
    ink[name] = style.getPropertyValue('--' + name).trim();
}
const camera = {
  x: 0,
  y: 0,
  k: 1
};  // shared, so that pictures side by side move together
const font = '11px ui-monospace, "DejaVu Sans Mono", monospace', boldFont = 'bold ' + font,
      titleFont = 'bold 12px system-ui, "DejaVu Sans", sans-serif';
const drawTimes = [];

/// Blue to yellow, which reads in grey as dark to light.
function scaleColor(x) {
  const stops = [[0, 32, 77], [64, 77, 107], [124, 123, 120], [188, 175, 111], [255, 234, 70]];
  const at = Math.min(3.999, Math.max(0, x * 4)), i = Math.floor(at), f = at - i;
  return 'rgb(' + stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * f)).join(',') + ')';
}
function overlayColor(n) {
  if (!data.overlay || !app.state.overlay || !data.overlay.of.has(n)) return null;
  const {least, most, of} = data.overlay, x = most > least ? (of.get(n) - least) / (most - least) : 1;
  return {fill: scaleColor(x), text: x > .55 ? '#111' : '#fff'};
}

class Picture {
  constructor(parent, versionOf, label) {
    this.versionOf = versionOf;
    this.frame = make('div', undefined, 'picture');
    this.canvas = make('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', label);
    this.note = make('div', undefined, 'note');
    add(parent, add(this.frame, this.canvas, this.note));
    this.context = this.canvas.getContext('2d', {alpha: false});
  }
  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.frame.clientWidth;
    this.height = this.frame.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.ratio = ratio;
  }
  toWorld(px, py) {
    return [(px - this.width / 2) / camera.k + camera.x, (py - this.height / 2) / camera.k + camera.y];
  }
  toScreen(x, y) { return [(x - camera.x) * camera.k + this.width / 2, (y - camera.y) * camera.k + this.height / 2]; }

  draw(places) {
    if (!this.width || !this.height) return;
    const begin = performance.now(), c = this.context, v = this.versionOf(), k = camera.k;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = ink.paper;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const s = k * this.ratio;
    c.setTransform(s, 0, 0, s, this.canvas.width / 2 - camera.x * s, this.canvas.height / 2 - camera.y * s);
    const [x0, y0] = this.toWorld(0, 0), [x1, y1] = this.toWorld(this.width, this.height);
    this.v = v;
    this.window = [x0, y0, x1, y1];
    this.places = places;
    const visible = [];
    places.grid.query(x0, y0, x1, y1, i => {
      const item = places.items[i];
      if (item.x < x1 && item.x + item.w > x0 && item.y < y1 && item.y + item.h > y0) visible.push(i);
    });
    visible.sort((a, b) => a - b);
    if (k < .08 && visible.length > 1500)
      this.drawFar(visible, places, v);
    else {
      for (const i of visible)
        if (places.items[i].open) this.drawFrame(places.items[i], v);
      if (k > .02) this.drawEdges(places, v);
      for (const i of visible) this.drawItem(places.items[i], v);
      this.drawChosen(places, v);
    }
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawTimes.push(performance.now() - begin);
    if (drawTimes.length > 240) drawTimes.shift();
  }

  /// From far away boxes that fall on the same spot are drawn once: the marked before the plain.
  drawFar(visible, places, v) {
    const c = this.context, spot = 3, wide = Math.ceil(this.width / spot) + 1,
          taken = new Uint8Array(wide * (Math.ceil(this.height / spot) + 1));
    const rank = {off: 0, plain: 1, matched: 2, changed: 3, removed: 4, added: 5},
          colors = [null, ink.soft, ink.matched, ink.changed, ink.removed, ink.added];
    for (const i of visible) {
      const item = places.items[i];
      let state = 'plain';
      if (item.kind === 'node')
        state = data.state(item.index, v);
      else if (item.kind === 'group') {
        const counts = data.groupStates(item.index, v);
        state = ['added', 'removed', 'changed', 'matched'].find(s => counts[s]) || 'plain';
      }
      if (app.state.found && item.kind === 'node' && app.state.found[item.index]) state = 'matched';
      const [x, y] = this.toScreen(item.cx, item.y),
                at = Math.max(0, Math.floor(y / spot)) * wide + Math.max(0, Math.floor(x / spot));
      if (rank[state] <= taken[at]) continue;
      taken[at] = rank[state];
      c.fillStyle = colors[rank[state]];
      c.fillRect(item.x, item.y, Math.max(item.w, spot / camera.k), Math.max(item.h, spot / camera.k));
    }
  }

  path(points) {
    const c = this.context;
    c.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 4) {
      c.lineTo(points[i], points[i + 1]);
      if (i + 3 < points.length) {
        const y = (points[i + 1] + points[i + 3]) / 2;
        c.bezierCurveTo(points[i], y, points[i + 2], y, points[i + 2], points[i + 3]);
      }
    }
  }
  arrow(x, y) {
    const c = this.context;
    c.moveTo(x, y);
    c.lineTo(x - 3.5, y - 6);
    c.lineTo(x + 3.5, y - 6);
    c.closePath();
  }

  static edgeState(life, v) {
    const is = life.some(l => l[0] <= v && v <= l[1]), was = v === 0 || life.some(l => l[0] <= v - 1 && v - 1 <= l[1]);
    return is ? (was ? 'plain' : 'added') : (v > 0 && was ? 'removed' : 'off');
  }
  /// Paths of one look are stroked together.
  drawEdges(places, v) {
    const looks = {plain: [], next: [], far: [], added: [], removed: []}, [x0, y0, x1, y1] = this.window;
    places.edgeGrid.query(x0, y0, x1, y1, i => {
      const edge = places.edges[i], state = Picture.edgeState(edge.life, v);
      if (state !== 'off')
        looks[state === 'plain' ? (edge.next ? 'next' : edge.far ? 'far' : 'plain') : state].push(edge.points);
    });
    if (camera.k > .12)
      places.grid.query(x0, y0, x1, y1, i => {
        const item = places.items[i];
        if (!item.open) return;
        const inner = shapePlaces(data.groups[item.index].shape);
        inner.edgeGrid.query(x0 - item.x, y0 - item.y, x1 - item.x, y1 - item.y, e => {
          const edge = inner.edges[e], state = Picture.edgeState([[edge.first, edge.last]], v);
          if (state !== 'off') looks[state].push(edge.points.map((p, j) => p + (j % 2 ? item.y : item.x)));
        });
      });
    for (const [look, color, width, dash] of [
             ['plain', ink.soft, 1, []], ['far', ink.soft, 1, []], ['next', ink.soft, 1.2, [2, 3]],
             ['added', ink.added, 1.8, []], ['removed', ink.removed, 1.6, [5, 3]]])
      this.strokeAll(looks[look], color, width, dash);
  }
  strokeAll(list, color, width, dash) {
    if (!list.length) return;
    const c = this.context;
    c.strokeStyle = c.fillStyle = color;
    c.lineWidth = width / Math.min(1, Math.max(camera.k, .3));
    c.setLineDash(dash);
    c.beginPath();
    for (const points of list) this.path(points);
    c.stroke();
    c.setLineDash([]);
    if (camera.k < .25) return;
    c.beginPath();
    for (const points of list) this.arrow(points[points.length - 2], points[points.length - 1]);
    c.fill();
  }

  drawFrame(item, v) {
    const c = this.context, group = data.groups[item.index];
    this.fillGroup(item, group);
    if (camera.k < .12) return;
    c.font = titleFont;
    c.fillStyle = ink.ink;
    c.textBaseline = 'top';
    c.fillText(this.fitted(groupTitle(item.index), item.w - 24, 7), item.x + 10, item.y + 6);
  }
  fillGroup(item, group) {
    const c = this.context;
    c.fillStyle = group.kind === 'captured' ? ink.captured : group.kind === 'eager' ? ink.stripe2 : ink.layer;
    c.fillRect(item.x, item.y, item.w, item.h);
    if (group.kind === 'eager' && camera.k > .05) {
      c.fillStyle = ink.stripe1;
      for (let x = 0; x < item.w; x += 24) c.fillRect(item.x + x, item.y, Math.min(12, item.w - x), item.h);
    }
    c.lineWidth = group.kind === 'captured' ? 1.6 : 1;
    c.strokeStyle = group.kind === 'captured' ? ink.green : ink.line;
    c.strokeRect(item.x, item.y, item.w, item.h);
  }

  drawItem(item, v) {
    const [x0, y0, x1, y1] = this.window;
    if (item.kind === 'node') return this.drawNode(item.index, item, v);
    if (item.kind !== 'group') return this.drawPort(item);
    if (!item.open) return this.drawGroup(item, v);
    const inner = shapePlaces(data.groups[item.index].shape);
    if (camera.k < .05) return;
    inner.grid.query(x0 - item.x, y0 - item.y, x1 - item.x, y1 - item.y, k => {
      const box = inner.boxes[k];
      this.drawNode(data.groups[item.index].nodes[k], {x: item.x + box.x, y: item.y + box.y, w: box.w, h: box.h}, v);
    });
  }

  fitted(words, width, character) { return shorten(words, Math.max(3, Math.floor(width / character))); }

  drawNode(n, r, v) {
    const c = this.context, state = data.state(n, v), color = overlayColor(n), found = app.state.found;
    c.globalAlpha = state === 'off' ? .12 : found && !found[n] ? .3 : 1;
    c.fillStyle = color ? color.fill : ink[data.kind(n)];
    c.fillRect(r.x, r.y, r.w, r.h);
    if (camera.k > .1) {
      c.strokeStyle = state === 'plain' || state === 'off' ? ink.soft : ink[state];
      c.lineWidth = state === 'plain' || state === 'off' ? 1 : 2.2;
      if (state === 'removed') c.setLineDash([5, 3]);
      c.strokeRect(r.x, r.y, r.w, r.h);
      c.setLineDash([]);
      if (found && found[n] && state !== 'off') {
        c.strokeStyle = ink.matched;
        c.lineWidth = 3;
        c.strokeRect(r.x - 4, r.y - 4, r.w + 8, r.h + 8);
      }
    }
    if (camera.k > .35) {
      c.textBaseline = 'top';
      c.fillStyle = color ? color.text : ink.ink;
      const lines = data.lines(n);
      for (let i = 0; i < lines.length; ++i) {
        c.font = i ? font : boldFont;
        c.fillText(shorten(lines[i], Math.min(40, Math.floor((r.w - 10) / 6.63))), r.x + 7, r.y + 5 + 14 * i);
      }
    }
    if (glyphs[state] && camera.k > .15) {
      c.font = 'bold 15px system-ui, sans-serif';
      c.textBaseline = 'top';
      c.fillStyle = ink[state];
      c.fillText(glyphs[state], r.x - 13, r.y - 1);
    }
    c.globalAlpha = 1;
  }

  drawGroup(item, v) {
    const c = this.context, group = data.groups[item.index], counts = data.groupStates(item.index, v),
          copies = app.state.folded ? data.copies[group.shape].length : 1;
    if (copies > 1 && camera.k > .1)
      for (const d of [6, 3]) {
        c.fillStyle = ink.paper;
        c.strokeStyle = ink.line;
        c.lineWidth = 1;
        c.fillRect(item.x + d, item.y + d, item.w, item.h);
        c.strokeRect(item.x + d, item.y + d, item.w, item.h);
      }
    this.fillGroup(item, group);
    const state = ['added', 'removed', 'changed', 'matched'].find(s => counts[s]);
    if (state) {
      c.strokeStyle = ink[state];
      c.lineWidth = 2.2;
      if (state === 'removed') c.setLineDash([5, 3]);
      c.strokeRect(item.x, item.y, item.w, item.h);
      c.setLineDash([]);
    }
    const found = app.state.found;
    if (found &&
        data.copies[group.shape].some(
            g => (app.state.folded || g === item.index) && data.groups[g].nodes.some(n => found[n]))) {
      c.strokeStyle = ink.matched;
      c.lineWidth = 3;
      c.strokeRect(item.x - 4, item.y - 4, item.w + 8, item.h + 8);
    }
    if (camera.k < .3) return;
    c.textBaseline = 'top';
    c.fillStyle = ink.ink;
    c.font = boldFont;
    c.fillText(this.fitted(groupTitle(item.index), item.w - 14, 6.63), item.x + 7, item.y + 5);
    c.font = font;
    const marks =
        ['added', 'removed', 'changed', 'matched'].filter(s => counts[s]).map(s => glyphs[s] + counts[s]).join(' ');
    c.fillText(
        this.fitted(
            marks || '⊞ ' + counted(group.nodes.length - counts.off - counts.removed, 'node'), item.w - 14, 6.63),
        item.x + 7, item.y + 19);
  }

  drawPort(item) {
    const c = this.context,
          lines = item.kind === 'input' ? ['▽ ' + data.inputs[item.index].name, data.inputs[item.index].type] :
                                          outputLines(item.index, this.v);
    c.fillStyle = ink.io;
    c.strokeStyle = ink.soft;
    c.lineWidth = 1;
    c.beginPath();
    c.roundRect(item.x, item.y, item.w, item.h, Math.min(12, item.h / 2));
    c.fill();
    c.stroke();
    if (camera.k < .35) return;
    c.textBaseline = 'top';
    c.fillStyle = ink.ink;
    lines.forEach((line, i) => {
      c.font = i ? font : boldFont;
      c.fillText(shorten(line, Math.floor((item.w - 12) / 6.63)), item.x + 8, item.y + 5 + 14 * i);
    });
  }

  /// What is chosen stands out, with the edges at it; a chosen rewrite with the names of its rule.
  drawChosen(places, v) {
    const c = this.context, picked = app.state.picked;
    if (picked) {
      let r = null, i;
      if (picked.node !== undefined) {
        r = places.rectOf(picked.node);
        i = places.itemOf(picked.node);
      } else if (picked.group !== undefined) {
        i = places.itemOfGroup[picked.group];
        r = places.items[i];
      } else {
        i = picked.input !== undefined ? places.itemOfInput.get(picked.input) : places.itemOfOutput.get(picked.output);
        r = places.items[i];
      }
      if (r) {
        const near = [];
        for (const e of places.edgesAt.get(i) || []) {
          const edge = places.edges[e];
          if (Picture.edgeState(edge.life, v) === 'off' ||
              (picked.node !== undefined && data.groupOf[picked.node] >= 0 && places.items[i].open &&
               edge.source !== picked.node))
            continue;
          near.push(edge.whole || edge.points);
        }
        const item = places.items[i];
        if (picked.node !== undefined && item.open) {
          const inner = shapePlaces(data.groups[item.index].shape), place = data.placeOf[picked.node];
          for (const edge of inner.edges)
            if ((edge.from === place || edge.to === place) && edge.first <= v && v <= edge.last)
              near.push(edge.points.map((p, j) => p + (j % 2 ? item.y : item.x)));
        }
        this.strokeAll(near, ink.matched, 2.2, []);
        c.strokeStyle = ink.ink;
        c.lineWidth = 3 / Math.min(1, camera.k * 1.5);
        c.strokeRect(r.x - 3, r.y - 3, r.w + 6, r.h + 6);
      }
    }
    if (app.state.rewrite >= 0) this.drawRewrite(data.rewrites[app.state.rewrite], places);
  }
  drawRewrite(rewrite, places) {
    const c = this.context, tags = new Map();
    const ring = (n, color, dash) => {
      if (n < 0) return;
      const r = places.rectOf(n);
      if (!r) return;
      c.setLineDash(dash);
      c.strokeStyle = color;
      c.lineWidth = 3 / Math.min(1, camera.k * 1.5);
      c.strokeRect(r.x - 5, r.y - 5, r.w + 10, r.h + 10);
      c.setLineDash([]);
    };
    for (const n of rewrite.matched) ring(n, ink.matched, []);
    for (const n of rewrite.created) ring(n, ink.added, [8, 3]);
    if (camera.k < .3) return;
    for (const [name, value] of rewrite.bindings) {
      const n = value >= data.inputs.length ? data.valueNode[value] : -1;
      if (n >= 0) tags.set(n, (tags.has(n) ? tags.get(n) + ', ' : '') + name);
    }
    c.font = 'bold 12px ui-monospace, "DejaVu Sans Mono", monospace';
    c.textBaseline = 'top';
    for (const [n, words] of tags) {
      const r = places.rectOf(n), item = places.items[places.itemOf(n)];
      if (!r || (item.kind === 'group' && !item.open)) continue;
      const w = words.length * 7.3 + 10, x = r.x + r.w - w + 8, y = r.y - 17;
      c.fillStyle = ink.matched;
      c.fillRect(x, y, w, 17);
      c.fillStyle = ink.paper;
      c.fillText(words, x + 5, y + 3);
    }
  }
}
function groupTitle(g) {
  const group = data.groups[g], copies = data.copies[group.shape];
  const state = {captured: ' · captured', eager: ' · eager', layer: '', run: ''}[group.kind];
  if (!app.state.folded || copies.length === 1) return group.name + state;
  return '×' + copies.length + ' ' +
      (g === copies[0] ? group.name + ' … ' + data.groups[copies[copies.length - 1]].name : group.name + ' shown') +
      state;
}
function outputLines(slot, v) {
  const all = data.raw.outputs;
  for (let i = 0; i < all.length; i += 4)
    if (all[i] === slot && all[i + 2] <= v && v <= all[i + 3])
      return ['△ ' + data.valueName(all[i + 1]), data.valueType(all[i + 1])];
  return ['△ output ' + slot, ''];
}
