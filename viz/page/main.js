// Starts the page, and lets tests and scripts ask what is on it.
document.querySelector('h1').textContent = data.title;
document.title = data.title;
readInk();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readInk(); app.change(); });
{
  const shown = data.raw.folded.kind.reduce((sum, kind, i) => sum + (kind === 0 ? data.groups[data.raw.folded.index[i]].nodes.length : 1), 0);
  if (shown <= mostBoxes) for (const g of app.state.copy) app.state.expanded.add(g);
  app.state.view = shown <= mostBoxes ? 'graph' : 'overview';
}
app.change({}, true);
let fitted = false;
tabs.onOpen(id => { if (id === 'graph') { stage.resize(); if (!fitted) { fitted = true; stage.fitWidth(); } } });
tabs.start();

window.piecewise = Object.freeze({
  nodes: () => data.count,
  shown: () => stage.places().shown(),
  version: () => app.state.now,
  state: name => { const n = window.piecewise.find(name); return n < 0 ? null : data.state(n, app.state.now); },
  find: name => { for (let n = 0; n < data.count; ++n) if (data.values(n).some(v => data.valueName(v) === name)) return n; return -1; },
  name: n => data.name(n),
  picked: () => app.state.picked && { ...app.state.picked },
  rewrite: () => app.state.rewrite,
  hits: () => app.state.found ? app.state.found.reduce((a, b) => a + b, 0) : null,
  open: () => stage.places().items.filter(item => item.open).length,
  items: () => stage.places().items.map(({ kind, index, x, y, w, h, open }) => ({ kind, index, x, y, w, h, open })),
  /// Where each shown node stands, by its number: x, y, width, height, rounded.
  places: () => { const out = {}; for (let n = 0; n < data.count; ++n) { const r = stage.places().rectOf(n); if (r) out[n] = [r.x, r.y, r.w, r.h].map(Math.round); } return out; },
  /// On the screen, from the upper left corner of the window.
  onScreen: n => { const r = stage.places().rectOf(n), c = stage.picture.canvas.getBoundingClientRect(), [x, y] = stage.picture.toScreen(r.x + r.w / 2, r.y + r.h / 2); return [x + c.left, y + c.top]; },
  camera: () => ({ ...camera }),
  look: (x, y, k) => { camera.x = x; camera.y = y; camera.k = k; stage.draw(); },
  /// Milliseconds that drawing one frame takes.
  drawTime: () => { const begin = performance.now(); stage.drawNow(); stage.picture.context.getImageData(0, 0, 1, 1); return performance.now() - begin; },
});
