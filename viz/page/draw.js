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
      titleFont = 'bold 12px system-ui, "DejaVu Sans", sans-serif',
      labelFont = '10px ui-monospace, "DejaVu Sans Mono", monospace';

/// Blue to yellow, which is dark to light in grayscale.
function scaleColor(x) {
  const stops = [[0, 32, 77], [64, 77, 107], [124, 123, 120], [188, 175, 111], [255, 234, 70]];
  const at = Math.min(3.999, Math.max(0, x * 4)), i = Math.floor(at), f = at - i;
  return 'rgb(' + stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * f)).join(',') + ')';
}
/// Returns a fill, and the text color with more contrast.
function fillOf(x) {
  const fill = scaleColor(x), [r, g, b] = fill.match(/\d+/g).map(c => (c / 255) ** 2.2);
  return {fill, text: .2126 * r + .7152 * g + .0722 * b > .18 ? '#000' : '#fff'};
}
function overlayColor(n) {
  if (!data.overlay || !app.state.overlay || !data.overlay.of.has(n)) return null;
  const {least, most, of} = data.overlay;
  return fillOf(most > least ? (of.get(n) - least) / (most - least) : 1);
}

/// For low zoom: all boxes in one list of typed arrays, created lazily. `node`: its number, −1 − that of a closed
/// group, or farPort for anything else.
const farPort = -2147483648, farStates = ['off', 'plain', 'matched', 'changed', 'removed', 'added'];
function farPlaces(places) {
  if (places.far) return places.far;
  const items = [];
  places.each(item => {
    if (!item.inner && item.kind !== 'source' && item.kind !== 'leaf') items.push(item);
  });
  const count = items.length, of = key => Float32Array.from(items, item => item[key]);
  const node = Int32Array.from(
      items,
      item => item.kind === 'node' ? item.index :
          item.kind === 'group'    ? -1 - item.index :
                                     farPort);
  return places.far = {x: of('x'), y: of('y'), w: of('w'), h: of('h'), node, count};
}

class Picture {
  /// `earlier`: the left one of two side by side, which shows the version to compare with.
  constructor(parent, earlier, label) {
    this.earlier = earlier;
    this.frame = make('div', undefined, 'picture');
    this.canvas = make('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', label);
    this.note = make('div', undefined, 'note');
    add(parent, add(this.frame, this.canvas, this.note));
    this.screen = this.canvas.getContext('2d', {alpha: false});
    this.context = this.screen;  // the canvas context
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

  version() { return this.earlier ? app.state.base : app.state.now; }
  /// Returns the visible state: side by side, each picture shows only its own version.
  seen(state) { return app.state.sideBySide && state === (this.earlier ? 'added' : 'removed') ? 'off' : state; }
  state(n) { return this.seen(data.state(n, app.state.base, app.state.now)); }
  edgeState(life) { return this.seen(data.edgeState(life, app.state.base, app.state.now)); }
  counts(g) {
    const counts = {...data.groupStates(g, app.state.base, app.state.now)};
    for (const s of ['added', 'removed'])
      if (this.seen(s) === 'off') counts.off += counts[s], counts[s] = 0;
    return counts;
  }
  /// Returns true if a box is drawn; nodes in neither version are, on request, unfilled frames.
  visible(state) { return state !== 'off' || app.state.ghosts; }

  draw(places) {
    if (!this.width || !this.height) return;
    this.drawOn(this.screen, places, this.ratio);
  }
  /// Draws on a canvas, or on an SVG writer, at this many pixels per screen pixel.
  drawOn(c, places, ratio) {
    const k = camera.k, s = k * ratio, wide = this.width * ratio, high = this.height * ratio;
    this.context = c;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = ink.paper;
    c.fillRect(0, 0, wide, high);
    c.setTransform(s, 0, 0, s, wide / 2 - camera.x * s, high / 2 - camera.y * s);
    const [x0, y0] = this.toWorld(0, 0), [x1, y1] = this.toWorld(this.width, this.height);
    this.window = [x0, y0, x1, y1];
    this.places = places;
    if (k < .05) {
      this.drawFrames(places);
      if (k > .02) this.drawEdges(places);
      this.drawFar(places);
      this.drawChosen(places);
    } else {
      this.drawFrames(places);
      this.drawEdges(places);
      this.drawItems(places);
      if (app.state.labels && k > .5) this.drawLabels(places);
      this.drawChosen(places);
    }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context = this.screen;
  }

  /// Returns the items of a level in the window, in order.
  inWindow(level) {
    const [x0, y0, x1, y1] = this.window, found = [];
    level.grid.query(x0, y0, x1, y1, i => {
      const item = level.items[i];
      if (item.x < x1 && item.x + item.w > x0 && item.y < y1 && item.y + item.h > y0) found.push(i);
    });
    return found.sort((a, b) => a - b).map(i => level.items[i]);
  }

  /// At low zoom, draws boxes on the same spot once, marked ones preferred. In SVG a row of equal
  /// spots is one rectangle.
  drawFar(places) {
    const c = this.context, spot = 3, wide = Math.ceil(this.width / spot) + 1, high = Math.ceil(this.height / spot) + 1,
          taken = new Uint8Array(wide * high), colors = [null, ink.soft, ...farStates.slice(2).map(s => ink[s])];
    const [x0, y0] = this.window, k = camera.k / spot;
    const {x, y, w, h, count} = farPlaces(places), ranks = this.farRanks(places);
    for (let i = 0; i < count; ++i) {
      const rank = ranks[i];
      if (!rank) continue;
      const i0 = Math.max(0, Math.floor((x[i] - x0) * k)), i1 = Math.min(wide - 1, Math.floor((x[i] + w[i] - x0) * k)),
            j0 = Math.max(0, Math.floor((y[i] - y0) * k)), j1 = Math.min(high - 1, Math.floor((y[i] + h[i] - y0) * k));
      for (let j = j0; j <= j1; ++j)
        for (let at = j * wide + i0; at <= j * wide + i1; ++at)
          if (rank > taken[at]) taken[at] = rank;
    }
    if (c === this.screen)
      this.drawSpots(taken, wide, high, colors, x0, y0, k);
    else
      for (let j = 0; j < high; ++j)
        for (let i = 0; i < wide;) {
          const rank = taken[j * wide + i], from = i;
          while (i < wide && taken[j * wide + i] === rank) ++i;
          if (!rank) continue;
          c.fillStyle = colors[rank];
          c.fillRect(x0 + from / k, y0 + j / k, (i - from) / k, 1 / k);
        }
  }
  /// Draws on the canvas as an enlarged image with one pixel for each spot.
  drawSpots(taken, wide, high, colors, x0, y0, k) {
    const c = this.context, small = make('canvas');
    small.width = wide, small.height = high;
    const context = small.getContext('2d'), image = context.createImageData(wide, high),
          pixels = new Uint32Array(image.data.buffer), value = colors.map(color => {
            if (!color) return 0;
            const rgb = parseInt(color.slice(1), 16);  // inks are #rrggbb; in memory: red first, then opacity last
            return (255 << 24 | (rgb & 255) << 16 | (rgb & 0xff00) | rgb >> 16) >>> 0;
          });
    for (let i = 0; i < taken.length; ++i) pixels[i] = value[taken[i]];
    context.putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(small, x0, y0, wide / k, high / k);
  }
  /// Returns, for each box at low zoom, the number of its state; 0 if it is not drawn.
  farRanks(places) {
    const {base, now, found, sideBySide} = app.state, old = this.far;
    if (old && old.places === places && old.base === base && old.now === now && old.found === found &&
        old.sideBySide === sideBySide)
      return old.ranks;
    const {node, count} = farPlaces(places), ranks = new Uint8Array(count);
    for (let i = 0; i < count; ++i) {
      const n = node[i];
      let state = 'plain';
      if (n >= 0)
        state = found && found[n] ? 'matched' : this.state(n);
      else if (n > farPort) {
        const counts = this.counts(-1 - n);
        state = ['added', 'removed', 'changed', 'matched', 'plain'].find(s => counts[s]) || 'off';
      }
      ranks[i] = farStates.indexOf(state);
    }
    this.far = {places, base, now, found, sideBySide, ranks};
    return ranks;
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

  groupShown(g) { return app.state.ghosts || this.counts(g).off < data.groups[g].nodes.length; }

  /// Calls `act(edge, state)` for each edge in the window that one of the versions has.
  eachEdge(level, act) {
    level.edgeGrid.query(...this.window, i => {
      const edge = level.edges[i], state = this.edgeState(edge.life);
      if (state !== 'off') act(edge, state);
    });
    if (camera.k > .12)
      for (const item of this.inWindow(level))
        if (item.inner) this.eachEdge(item.inner, act);
  }
  /// Strokes paths with the same style together.
  drawEdges(places) {
    const looks = {plain: [], next: [], added: [], removed: [], nextAdded: [], nextRemoved: []};
    this.eachEdge(places, (edge, state) => {
      const look = !edge.next ? state : {plain: 'next', added: 'nextAdded', removed: 'nextRemoved'}[state];
      looks[look].push(edge.points);
    });
    for (const [look, color, width, dash] of [
             ['plain', ink.soft, 1, []], ['next', ink.soft, 1.2, [2, 3]], ['nextAdded', ink.added, 1.6, [2, 3]],
             ['nextRemoved', ink.removed, 1.6, [2, 3]], ['added', ink.added, 1.8, []],
             ['removed', ink.removed, 1.6, [5, 3]]])
      this.strokeAll(looks[look], color, width, dash);
  }
  /// Draws the type of an edge's value at its source.
  drawLabels(places) {
    const c = this.context, done = new Set();
    c.font = labelFont;
    c.textBaseline = 'top';
    this.eachEdge(places, edge => {
      if (edge.far) return;
      const x = edge.points[0] + 4, y = edge.points[1] + 2, key = x + ' ' + y;
      if (done.has(key)) return;
      done.add(key);
      const words = shorten(data.valueType(edge.value), 28);
      c.fillStyle = ink.paper;
      c.fillRect(x - 1, y, c.measureText(words).width + 2, 12);
      c.fillStyle = ink.ink;
      c.fillText(words, x, y + 1);
    });
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

  drawFrames(level) {
    for (const item of this.inWindow(level)) {
      if (!item.inner || !this.groupShown(item.index)) continue;
      this.fillGroup(item, data.groups[item.index]);
      if (camera.k >= .05) this.drawFrames(item.inner);
    }
  }
  /// Draws the title of a frame over the edges that cross it.
  drawTitle(item) {
    if (camera.k < .12 || !this.groupShown(item.index)) return;
    const c = this.context, words = this.fitted(groupTitle(item.index), item.w - 24, 7);
    c.font = titleFont;
    c.textBaseline = 'top';
    c.fillStyle = this.groupInk(data.groups[item.index]);
    c.fillRect(item.x + 8, item.y + 4, c.measureText(words).width + 4, 17);
    c.fillStyle = ink.ink;
    c.fillText(words, item.x + 10, item.y + 6);
  }
  /// Fills a closed box; for an open one only the sides, so that its contents stay readable.
  stripe(item) {
    const c = this.context, band = 12, step = 2 * band;
    c.fillStyle = ink.stripe1;
    if (!item.inner) {
      for (let x = 0; x < item.w; x += step) c.fillRect(item.x + x, item.y, Math.min(band, item.w - x), item.h);
      return;
    }
    const seen = Math.max(0, Math.floor((this.window[1] - item.y) / step)) * step,
          end = Math.min(item.h, this.window[3] - item.y);
    for (let y = seen; y < end; y += step)
      for (const x of [item.x, item.x + item.w - band]) c.fillRect(x, item.y + y, band, Math.min(band, item.h - y));
  }
  groupInk(group) {
    return group.kind === 'captured' ? ink.captured :
        group.kind === 'eager'       ? ink.stripe2 :
        group.depth % 2              ? ink.paper :
                                       ink.layer;
  }
  fillGroup(item, group) {
    const c = this.context;
    c.fillStyle = this.groupInk(group);
    c.fillRect(item.x, item.y, item.w, item.h);
    if (group.kind === 'eager' && camera.k > .05) this.stripe(item);
    c.lineWidth = group.kind === 'captured' ? 1.6 : 1;
    c.strokeStyle = group.kind === 'captured' ? ink.green : ink.line;
    c.strokeRect(item.x, item.y, item.w, item.h);
  }

  drawItems(level) {
    for (const item of this.inWindow(level))
      if (item.kind === 'node')
        this.drawNode(item.index, item);
      else if (item.kind !== 'group')
        this.drawPort(item);
      else if (!item.inner)
        this.drawGroup(item);
      else {
        this.drawTitle(item);
        this.drawItems(item.inner);
      }
  }

  fitted(words, width, character) { return shorten(words, Math.max(3, Math.floor(width / character))); }

  drawNode(n, r) {
    const state = this.state(n);
    if (!this.visible(state)) return;
    const c = this.context, found = app.state.found, dim = state === 'off' || (found && !found[n]),
          color = dim ? {fill: ink.paper, text: ink.soft} : overlayColor(n);
    const marked = state !== 'plain' && state !== 'off';
    c.fillStyle = marked && camera.k <= .1 ? ink[state] : color ? color.fill : ink[data.kind(n)];
    c.fillRect(r.x, r.y, r.w, r.h);
    if (camera.k > .1) {
      c.strokeStyle = marked ? ink[state] : ink.soft;
      c.lineWidth = marked ? 2.2 : 1;
      if (state === 'removed') c.setLineDash([5, 3]);
      if (state === 'off') c.setLineDash([1, 3]);
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
  }

  drawGroup(item) {
    if (!this.groupShown(item.index)) return;
    const c = this.context, group = data.groups[item.index], counts = this.counts(item.index),
          copies = app.state.folded ? group.siblings.length : 1;
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
    if (this.hits().has(item)) {
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
    const nodes = counted(group.nodes.length - counts.off - counts.removed, 'node'), both = marks + ' · ' + nodes;
    const line = !marks ? '⊞ ' + nodes : both.length * 6.63 <= item.w - 14 ? both : marks;
    c.fillText(this.fitted(line, item.w - 14, 6.63), item.x + 7, item.y + 19);
  }

  /// Returns the closed groups that contain search hits, or copies of them.
  hits() {
    const found = app.state.found, old = this.hitsOf;
    if (old && old.found === found && old.places === this.places) return old.items;
    const items = new Set();
    if (found)
      for (let n = 0; n < data.count; ++n)
        if (found[n]) items.add(this.places.rectOf(n));
    this.hitsOf = {found, places: this.places, items};
    return items;
  }

  drawPort(item) {
    const c = this.context,
          lines = item.kind === 'input' ? ['▽ ' + data.inputs[item.index].name, data.inputs[item.index].type] :
                                          outputLines(item.index, this.version());
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

  /// Highlights the selection with its edges; a selected rewrite with the names of its rule.
  drawChosen(places) {
    const c = this.context, picked = app.state.picked, r = picked && stage.rectOf(picked);
    if (r) {
      this.strokeAll(this.edgesOf(picked, places).map(edge => edge.whole), ink.matched, 2.2, []);
      c.strokeStyle = ink.ink;
      c.lineWidth = 3 / Math.min(1, camera.k * 1.5);
      c.strokeRect(r.x - 3, r.y - 3, r.w + 6, r.h + 6);
    }
    if (app.state.rewrite >= 0) this.drawRewrite(data.rewrites[app.state.rewrite], places);
  }
  /// Returns the edges of the selection; for a node, also those that leave its groups.
  edgesOf(picked, places) {
    const at = (level, i) => (level.edgesAt.get(i) || []).map(e => level.edges[e]);
    let found = [];
    if (picked.node !== undefined)
      for (const {level, i, item, node} of places.find(picked.node))
        found.push(...at(level, i).filter(edge => !item.inner || edge.source === node));
    else if (picked.group !== undefined) {
      const {level, i} = places.findGroup(picked.group);
      found = at(level, i);
    } else
      found = at(
          places,
          picked.input !== undefined ? places.itemOfInput.get(picked.input) : places.itemOfOutput.get(picked.output));
    return found.filter(edge => this.edgeState(edge.life) !== 'off');
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
      const r = places.rectOf(n);
      if (!r || r.kind === 'group') continue;
      const w = words.length * 7.3 + 10, x = r.x + r.w - w + 8, y = r.y - 17;
      c.fillStyle = ink.matched;
      c.fillRect(x, y, w, 17);
      c.fillStyle = ink.paper;
      c.fillText(words, x + 5, y + 3);
    }
  }
}
function groupTitle(g) {
  const group = data.groups[g], copies = group.siblings;
  const state = {captured: ' · captured', eager: ' · eager'}[group.kind] || '';
  if (!app.state.folded || copies.length === 1) return group.label + state;
  return '×' + copies.length + ' ' +
      (g === copies[0] ? group.label + ' … ' + data.groups[copies[copies.length - 1]].label : group.label + ' shown') +
      state;
}
function outputLines(slot, v) {
  const all = data.raw.outputs;
  for (let i = 0; i < all.length; i += 4)
    if (all[i] === slot && all[i + 2] <= v && v <= all[i + 3])
      return ['△ ' + data.valueName(all[i + 1]), data.valueType(all[i + 1])];
  return ['△ output ' + slot, ''];
}
