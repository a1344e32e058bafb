// Starts the page, and lets tests and scripts ask what is on it.
document.querySelector('h1').textContent = data.title;
document.title = data.title;
readInk();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readInk();
  app.change();
});
{
  const shown = data.raw.folded.kind.reduce(
      (sum, kind, i) => sum + (kind === 0 ? data.groups[data.raw.folded.index[i]].nodes.length : 1), 0);
  if (shown <= mostBoxes)
    for (const g of app.state.copy) app.state.expanded.add(g);
  app.state.view = shown <= mostBoxes ? 'graph' : 'overview';
}
const opening = data.raw.view === 'auto' ? '' : data.raw.view;
const asked = data.raw.version === undefined ? -1 : Math.min(data.raw.version, data.versions - 1);
app.change(
    {
      now: asked < 0 ? data.versions - 1 : asked,
      base: asked < 0 ? 0 : Math.max(0, asked - 1),
      beside: opening === 'side' && data.versions > 1
    },
    true);
if (['overview', 'graph', 'all'].includes(opening)) stage.view(opening);
let fitted = false;
tabs.onOpen(id => {
  if (id === 'graph') {
    stage.resize();
    if (!fitted) {
      fitted = true;
      stage.home();
    }
  }
});
if (opening && !location.hash)
  tabs.open(['overview', 'all', 'side'].includes(opening) ? 'graph' : opening);
else
  tabs.start();

/// What is drawn, all of it: frames, boxes with their state, edges with their ways and what they join.
/// Numbers are those of the page, before the camera.
function drawing() {
  const places = stage.places(), picture = stage.picture, boxes = [], edges = [];
  const box = (kind, index, state, r, inside) =>
      boxes.push({kind, index, state, x: r.x, y: r.y, w: r.w, h: r.h, inside});
  places.items.forEach((item, i) => {
    if (item.kind === 'node') {
      const state = picture.state(item.index);
      if (picture.visible(state)) box('node', item.index, state, item, -1);
    } else if (item.kind !== 'group')
      box(item.kind, item.index, 'plain', item, -1);
    else if (picture.groupShown(item.index)) {
      box('group', item.index, item.open ? 'open' : 'closed', item, -1);
      if (!item.open) return;
      const inner = shapePlaces(data.groups[item.index].shape), at = boxes.length - 1;
      data.groups[item.index].nodes.forEach((n, k) => {
        const b = inner.boxes[k], state = picture.state(n);
        if (picture.visible(state)) box('node', n, state, {x: item.x + b.x, y: item.y + b.y, w: b.w, h: b.h}, at);
      });
      for (const edge of inner.edges) {
        const state = picture.edgeState([[edge.first, edge.last]]),
              name = k => k < data.groups[item.index].nodes.length ? data.groups[item.index].nodes[k] : -1;
        if (state !== 'off')
          edges.push({
            state,
            next: false,
            far: edge.far,
            from: name(edge.from),
            to: name(edge.to),
            inside: at,
            points: edge.points.map((p, j) => p + (j % 2 ? item.y : item.x))
          });
      }
    }
  });
  for (const edge of places.edges) {
    const state = picture.edgeState(edge.life);
    if (state !== 'off')
      edges.push({
        state,
        next: edge.next,
        far: edge.far,
        from: edge.source,
        to: -1,
        item: edge.b,
        inside: -1,
        points: edge.points
      });
  }
  return {boxes, edges, width: places.width, height: places.height};
}

window.piecewise = Object.freeze({
  nodes: () => data.count,
  shown: () => stage.places().shown(n => stage.picture.visible(stateOf(n)), () => true).shown,
  version: () => app.state.now,
  base: () => app.state.base,
  state: name => {
    const n = window.piecewise.find(name);
    return n < 0 ? null : stateOf(n);
  },
  /// The node that makes a value, one of the version shown if there is one; −1: none.
  find: name => {
    let found = -1;
    for (let n = 0; n < data.count; ++n) {
      if (!data.values(n).some(v => data.valueName(v) === name)) continue;
      if (data.first[n] <= app.state.now && app.state.now <= data.last[n]) return n;
      if (found < 0) found = n;
    }
    return found;
  },
  name: n => data.name(n),
  picked: () => app.state.picked && {...app.state.picked},
  rewrite: () => app.state.rewrite,
  hits: () => app.state.found ? app.state.found.reduce((a, b) => a + b, 0) : null,
  open: () => stage.places().items.filter(item => item.open).length,
  items: () => stage.places().items.map(({kind, index, x, y, w, h, open}) => ({kind, index, x, y, w, h, open})),
  /// Where each shown node stands, by its number: x, y, width, height, rounded.
  places: () => {
    const out = {};
    for (let n = 0; n < data.count; ++n) {
      const r = stage.places().rectOf(n);
      if (r) out[n] = [r.x, r.y, r.w, r.h].map(Math.round);
    }
    return out;
  },
  /// On the screen, from the upper left corner of the window.
  onScreen: n => {
    const r = stage.places().rectOf(n), c = stage.picture.canvas.getBoundingClientRect(),
          [x, y] = stage.picture.toScreen(r.x + r.w / 2, r.y + r.h / 2);
    return [x + c.left, y + c.top];
  },
  camera: () => ({...camera}),
  look: (x, y, k) => {
    camera.x = x;
    camera.y = y;
    camera.k = k;
    stage.draw();
  },
  drawing,
  /// What is seen, as SVG.
  svg: exporting.svg,
  /// Milliseconds that drawing one frame takes.
  drawTime: () => {
    const begin = performance.now();
    stage.drawNow();
    stage.picture.context.getImageData(0, 0, 1, 1);
    return performance.now() - begin;
  },
});
share.read();
