// Starts the page, and exposes its contents to tests and scripts.
document.querySelector('h1').textContent = data.title;
document.title = data.title;
readInk();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readInk();
  app.change();
});
{
  // Opens groups as deep as the number of boxes stays small.
  const depths = data.groups.reduce((most, group) => Math.max(most, group.depth + 1), 0);
  let depth = depths;
  while (depth > 0 && boxesAt(depth) > mostBoxes) --depth;
  app.state.expanded = new Set(groupsDownTo(depth));
  app.state.view = depth === depths ? 'graph' : 'overview';
}
const opening = data.raw.view === 'auto' ? '' : data.raw.view;
const requested = data.raw.version === undefined ? -1 : Math.min(data.raw.version, data.versions - 1);
app.change(
    {
      now: requested < 0 ? data.versions - 1 : requested,
      base: requested < 0 ? 0 : Math.max(0, requested - 1),
      sideBySide: opening === 'side' && data.versions > 1
    },
    true);
if (['overview', 'graph', 'all'].includes(opening)) stage.view(opening);
let fitted = false;
tabs.onOpen(id => {
  $('caption').hidden = id !== 'graph' && id !== 'table';
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

/// Returns everything that is drawn: frames, boxes with their state, edges with their paths and ends;
/// `inside` is the frame, `toGroup`
/// the group at the end of an edge, or −1.
function drawing() {
  const places = stage.places(), picture = stage.picture, boxes = [], edges = [];
  const visit = (level, inside) => {
    for (const item of level.items) {
      const {kind, index, x, y, w, h} = item;
      let state = 'plain';
      if (kind === 'source' || kind === 'leaf') continue;
      if (kind === 'node') {
        state = picture.state(index);
        if (!picture.visible(state)) continue;
      }
      if (kind === 'group') {
        if (!picture.groupShown(index)) continue;
        state = item.inner ? 'open' : 'closed';
      }
      boxes.push({kind, index, state, x, y, w, h, inside});
      if (item.inner) visit(item.inner, boxes.length - 1);
    }
    const name = i => level.items[i].kind === 'node' ? level.items[i].index : -1;
    for (const edge of level.edges) {
      const state = picture.edgeState(edge.life);
      if (state === 'off') continue;
      edges.push({
        state,
        next: edge.next,
        far: edge.far,
        from: inside < 0 && edge.source >= 0 ? edge.source : name(edge.a),
        to: name(edge.b),
        toGroup: level.items[edge.b].kind === 'group' ? level.items[edge.b].index : -1,
        inside,
        points: edge.points
      });
    }
  };
  visit(places, -1);
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
  /// Returns the node that computes a value, preferably in the visible version; −1: none.
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
  open: () => {
    let open = 0;
    stage.places().each(item => open += item.inner ? 1 : 0);
    return open;
  },
  items: () =>
      stage.places().items.map(({kind, index, x, y, w, h, inner}) => ({kind, index, x, y, w, h, open: !!inner})),
  /// Returns the rectangle of each visible node by number: x, y, width, height, rounded.
  places: () => {
    const out = {};
    for (let n = 0; n < data.count; ++n) {
      const r = stage.places().rectOf(n);
      if (r) out[n] = [r.x, r.y, r.w, r.h].map(Math.round);
    }
    return out;
  },
  /// Returns screen coordinates, from the upper left corner of the window.
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
  /// Returns the view as SVG.
  svg: exporting.svg,
  /// Returns the milliseconds for drawing one frame.
  drawTime: () => {
    const begin = performance.now();
    stage.drawNow();
    stage.picture.context.getImageData(0, 0, 1, 1);
    return performance.now() - begin;
  },
});
share.read();
