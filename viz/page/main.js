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
app.change(
    {
      now: data.raw.version === undefined ? data.versions - 1 : Math.min(data.raw.version, data.versions - 1),
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
      stage.fitWidth();
    }
  }
});
if (opening && !location.hash)
  tabs.open(['overview', 'all', 'side'].includes(opening) ? 'graph' : opening);
else
  tabs.start();

window.piecewise = Object.freeze({
  nodes: () => data.count,
  shown: () => stage.places().shown(),
  version: () => app.state.now,
  state: name => {
    const n = window.piecewise.find(name);
    return n < 0 ? null : data.state(n, app.state.now);
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
  /// Milliseconds that drawing one frame takes.
  drawTime: () => {
    const begin = performance.now();
    stage.drawNow();
    stage.picture.context.getImageData(0, 0, 1, 1);
    return performance.now() - begin;
  },
});
