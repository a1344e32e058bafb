// The pictures: one, or two side by side with one camera. Handles moving, selecting, opening and closing.
const stage = (() => {
  for (const [tag, id, inside] of [
           ['div', 'bar', 'graph'], ['main', 'stage', 'graph'], ['div', 'pictures', 'stage'],
           ['aside', 'side', 'stage']]) {
    const element = make(tag);
    element.id = id;
    $(inside).append(element);
  }
  const parent = $('pictures');
  const words =
      'graph; arrow keys move along the edges, Enter opens and closes, ? lists keys; the Table tab is a text version';
  const left = new Picture(parent, true, 'earlier ' + words), right = new Picture(parent, false, words);
  const pictures = [left, right];
  const readable = 10 / 11;  // the text of boxes has 11 pixels; below 10 it is hard to read
  let places = null, pending = false;

  function lay() {
    places = new Level(-1, app.state).move(0, 0);
    // Runs early, so that the first frames are as fast as later ones.
    places.join();
    places.grid;
    farPlaces(places);
  }
  function shown() { return app.state.sideBySide ? pictures : [right]; }
  let moved = null;  // called when the camera may have moved
  function drawNow() {
    pending = false;
    if (moved) moved();
    for (const picture of shown()) picture.draw(places);
  }
  function draw() {
    if (!pending) {
      pending = true;
      requestAnimationFrame(drawNow);
    }
  }
  function resize() {
    left.frame.hidden = !app.state.sideBySide;
    for (const picture of shown()) picture.resize();
    draw();
  }
  function fit() {
    const w = right.width || 800, h = right.height || 600;
    camera.k = Math.min(1.5, Math.max(1e-4, Math.min(w / (places.width + 60), h / (places.height + 60))));
    camera.x = places.width / 2;
    camera.y = places.height / 2;
    draw();
  }
  /// Zooms to readable text, at the top: to the full width if that is readable.
  function fitWidth() {
    const w = right.width || 800, h = right.height || 600, wide = w / (places.width + 60);
    camera.k = Math.min(1, Math.max(readable, wide));
    camera.x = places.width / 2;
    if (wide < readable && places.items.length) camera.x = places.items[0].cx;
    camera.y = places.height * camera.k > h ? h / 2 / camera.k - 20 : places.height / 2;
    draw();
  }

  // ---- changes between the two visible versions, one window at a time
  /// Returns the changed rectangles, from the top; one drawn for several nodes occurs once.
  function changed() {
    const out = new Map();
    for (const n of data.differences(app.state.base, app.state.now)) {
      const r = places.rectOf(n);
      if (r && r.w) out.set(r.x + ' ' + r.y, out.get(r.x + ' ' + r.y) || {n, x: r.x, y: r.y, w: r.w, h: r.h});
    }
    return [...out.values()].sort((a, b) => a.y - b.y || a.x - b.x);
  }
  /// Groups as many changes as fit into a window at a readable zoom, from the top.
  function windows() {
    const w = (right.width || 800) * .8 / readable, h = (right.height || 600) * .8 / readable, out = [];
    for (const r of changed()) {
      const fits = out.find(
          one => Math.max(one.x1, r.x + r.w) - Math.min(one.x0, r.x) <= w &&
              Math.max(one.y1, r.y + r.h) - Math.min(one.y0, r.y) <= h);
      if (fits) {
        fits.x0 = Math.min(fits.x0, r.x), fits.x1 = Math.max(fits.x1, r.x + r.w);
        fits.y0 = Math.min(fits.y0, r.y), fits.y1 = Math.max(fits.y1, r.y + r.h);
        fits.nodes.push(r.n);
      } else
        out.push({x0: r.x, x1: r.x + r.w, y0: r.y, y1: r.y + r.h, nodes: [r.n]});
    }
    return out;
  }
  let window_ = -1;  // index of the current change
  /// Centers the camera on a place, but shows no empty space that the picture could fill.
  function look(one) {
    const edge = 30,
          inside = (at, size, seen) =>
              size + 2 * edge <= seen ? size / 2 : Math.min(Math.max(at, seen / 2 - edge), size + edge - seen / 2);
    camera.k = Math.min(1, Math.max(readable, camera.k));
    camera.x = inside((one.x0 + one.x1) / 2, places.width, (right.width || 800) / camera.k);
    camera.y = inside((one.y0 + one.y1) / 2, places.height, (right.height || 600) / camera.k);
    draw();
  }
  /// Keeps the camera after a step if a change is readable in the window.
  function follow() {
    const all = windows(), [x0, y0] = right.toWorld(0, 0), [x1, y1] = right.toWorld(right.width, right.height);
    window_ = -1;
    if (!all.length) return;
    const seen = changed().some(r => r.x >= x0 && r.x + r.w <= x1 && r.y >= y0 && r.y + r.h <= y1);
    if (seen && camera.k >= readable) return;
    window_ = 0;
    look(all[0]);
  }
  /// Goes to the next or previous window of changes.
  function goToChange(by) {
    const all = windows();
    if (!all.length) return;
    window_ = window_ < 0 ? (by > 0 ? 0 : all.length - 1) : (window_ + by + all.length) % all.length;
    pick({node: all[window_].nodes[0]});
    look(all[window_]);
    announce('change ' + (window_ + 1) + ' of ' + all.length + ': ' + counted(all[window_].nodes.length, 'node'));
  }
  /// Chooses the initial view: the changes, all of a small graph, or its top.
  function home() {
    const all = windows(), w = right.width || 800, h = right.height || 600;
    if (Math.min(w / (places.width + 60), h / (places.height + 60)) >= readable) return fit();
    fitWidth();
    if (all.length)
      window_ = 0, look(all[0]);
    else
      lookAtFirst();
  }
  /// Without changes: goes to the first box of the visible version, unless it is in view.
  function lookAtFirst() {
    const [x0, y0] = right.toWorld(0, 0), [x1, y1] = right.toWorld(right.width, right.height);
    let first = null;
    for (let n = 0; n < data.count && !first; ++n) {
      if (data.first[n] > app.state.now || data.last[n] < app.state.now) continue;
      const r = places.rectOf(n);
      if (r && r.w) first = r;
    }
    if (!first || (first.x < x1 && first.x + first.w > x0 && first.y < y1 && first.y + first.h > y0)) return;
    camera.x = first.x + first.w / 2;
    camera.y = first.y + .35 * (y1 - y0);
    draw();
  }
  function zoom(factor, px = right.width / 2, py = right.height / 2) {
    const [x, y] = right.toWorld(px, py);
    camera.k = Math.min(8, Math.max(1e-4, camera.k * factor));
    camera.x = x - (px - right.width / 2) / camera.k;
    camera.y = y - (py - right.height / 2) / camera.k;
    draw();
  }
  function rectOf(what) {
    if (what.node !== undefined) return places.rectOf(what.node);
    if (what.group !== undefined) return places.rectOfGroup(what.group);
    const i = what.input !== undefined ? places.itemOfInput.get(what.input) : places.itemOfOutput.get(what.output);
    return i === undefined ? null : places.items[i];
  }
  function show(what, near = true) {
    const r = rectOf(what);
    if (!r) return;
    if (near && camera.k < readable) camera.k = 1;
    camera.x = r.x + r.w / 2;
    camera.y = r.y + r.h / 2;
    draw();
  }
  /// Opens the groups of a node, and makes them the visible copies while equal ones are folded.
  function reveal(n) {
    const s = app.state;
    let hidden = false;
    for (const g of data.groupsOf(n)) {
      const {siblings, alike} = data.groups[g];
      hidden = hidden || s.copy[siblings[0]] !== g || !s.expanded.has(alike);
      s.copy[siblings[0]] = g;
      s.expanded.add(alike);
    }
    if (hidden) app.change({}, true);
  }
  /// Returns true if all ancestors of a group are open.
  function revealGroup(g) {
    const parent = data.groups[g].parent;
    if (parent >= 0) reveal(data.groups[g].nodes[0]);
  }
  function pick(what, center = false) {
    if (what && what.node !== undefined && center) reveal(what.node);
    if (what && what.group !== undefined && center) revealGroup(what.group);
    app.change({picked: what});
    if (what && center) show(what);
  }
  function toggle(g) {
    const s = app.state, some = (s.folded ? data.groups[g].siblings : [g]).map(c => data.groups[c].alike),
          open = some.filter(c => s.expanded.has(c));
    const before = rectOf({group: g}), at = before && [before.x + before.w / 2, before.y];
    if (open.length)
      for (const c of open) s.expanded.delete(c);
    else
      s.expanded.add(data.groups[g].alike);
    app.change({}, true);
    const after = rectOf({group: g});  // keeps the opened group in place
    if (at && after) {
      camera.x += after.x + after.w / 2 - at[0];
      camera.y += after.y - at[1];
      draw();
    }
  }
  /// Switches the view: groups closed, groups open, or every copy drawn.
  function view(name) {
    const s = app.state;
    s.expanded.clear();
    s.folded = name !== 'all';
    if (name === 'graph')
      for (const g of groupsDownTo(Infinity)) s.expanded.add(g);
    app.change({view: name}, true);
    home();
  }
  function openAll() {
    app.state.expanded = new Set(data.groups.map(group => group.alike));
    app.change({}, true);
    fitWidth();
  }

  /// Moves the selection along an edge (up, down) or within its rank (left, right).
  function walk(direction) {
    const picked = app.state.picked;
    if (!picked) {
      const first = places.items[0];
      if (first) pick({[first.kind]: first.index}), show(app.state.picked, false);
      return;
    }
    const r = rectOf(picked);
    if (!r) return;
    const x = r.x + r.w / 2, y = r.y + r.h / 2;
    let best = null, least = Infinity;
    const consider = (what, b) => {
      const dx = b.x + b.w / 2 - x, dy = b.y + b.h / 2 - y;
      const along = {up: -dy, down: dy, left: -dx, right: dx}[direction],
            across = direction === 'up' || direction === 'down' ? Math.abs(dx) : Math.abs(dy);
      if (along > 4 && along + 2.5 * across < least) least = along + 2.5 * across, best = what;
    };
    const reach = 3000;
    const visit = level => level.grid.query(x - reach, y - reach, x + reach, y + reach, i => {
      const item = level.items[i];
      if (item.inner) return visit(item.inner);
      if (item.kind === 'node' && !right.visible(stateOf(item.index))) return;
      consider({[item.kind]: item.index}, item);
    });
    visit(places);
    if (best) {
      pick(best);
      show(best, false);
    }
  }
  function enter() {
    const picked = app.state.picked;
    if (!picked) return;
    if (picked.group !== undefined)
      toggle(picked.group);
    else if (picked.node !== undefined && data.groupOf[picked.node] >= 0) {
      const g = data.groupsOf(picked.node).pop();
      toggle(g);
      pick({group: g});
    }
  }

  for (const picture of pictures) {
    const canvas = picture.canvas;
    canvas.addEventListener('wheel', e => {
      e.preventDefault();
      const r = canvas.getBoundingClientRect();
      zoom(Math.exp(-e.deltaY * .0015), e.clientX - r.left, e.clientY - r.top);
    }, {passive: false});
    let from = null, far = false;
    const fingers = new Map();
    /// Returns the midpoint and distance of two fingers.
    const pinch = () => {
      const [a, b] = [...fingers.values()];
      return {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, d: Math.hypot(a.x - b.x, a.y - b.y)};
    };
    canvas.addEventListener('pointerdown', e => {
      from = [e.clientX, e.clientY, camera.x, camera.y];
      far = fingers.size > 0;
      fingers.set(e.pointerId, {x: e.clientX, y: e.clientY});
      try {
        canvas.setPointerCapture(e.pointerId);
      } catch { /* a pointer that a script made */
      }
    });
    const lift = e => fingers.delete(e.pointerId);
    canvas.addEventListener('pointercancel', e => {
      lift(e);
      from = null;
    });
    canvas.addEventListener('pointermove', e => {
      const r = canvas.getBoundingClientRect();
      if (fingers.size === 2 && fingers.has(e.pointerId)) {
        const before = pinch();
        fingers.set(e.pointerId, {x: e.clientX, y: e.clientY});
        const after = pinch();
        camera.x -= (after.x - before.x) / camera.k;
        camera.y -= (after.y - before.y) / camera.k;
        zoom(after.d / Math.max(1, before.d), after.x - r.left, after.y - r.top);
        from = null;
        return;
      }
      if (!from) {
        hover(picture, e.clientX - r.left, e.clientY - r.top);
        return;
      }
      far = far || Math.abs(e.clientX - from[0]) + Math.abs(e.clientY - from[1]) > 4;
      if (!far) return;
      camera.x = from[2] - (e.clientX - from[0]) / camera.k;
      camera.y = from[3] - (e.clientY - from[1]) / camera.k;
      draw();
    });
    canvas.addEventListener('pointerup', e => {
      lift(e);
      if (from && !far) {
        const r = canvas.getBoundingClientRect(), [x, y] = picture.toWorld(e.clientX - r.left, e.clientY - r.top);
        pick(seen(places.at(x, y)));
      }
      from = null;
    });
    canvas.addEventListener('dblclick', e => {
      const r = canvas.getBoundingClientRect(), [x, y] = picture.toWorld(e.clientX - r.left, e.clientY - r.top),
            what = seen(places.at(x, y));
      if (what && what.group !== undefined) toggle(what.group);
    });
  }
  /// Deselects a node that is not drawn.
  function seen(what) {
    return what && what.node !== undefined && !right.visible(stateOf(what.node)) ?
        data.groupOf[what.node] >= 0 ? {group: data.groupsOf(what.node).pop()} : null :
        what;
  }
  function hover(picture, px, py) {
    const what = seen(places.at(...picture.toWorld(px, py)));
    picture.canvas.title = !what ? '' :
        what.node !== undefined  ? data.call(what.node) + '\n' + data.types(what.node) :
        what.group !== undefined ? groupTitle(what.group) + '\n' +
            counted(data.groups[what.group].nodes.length, 'node') :
                                   '';
    picture.canvas.style.cursor = what ? 'pointer' : 'grab';
  }
  window.addEventListener('resize', resize);
  app.listen(anew => {
    if (anew || !places) lay();
    left.note.textContent = 'after ' + versionName(app.state.base);
    right.note.textContent = app.state.sideBySide ? 'after ' + versionName(app.state.now) : '';
    const sideBySide = !left.frame.hidden;
    if (sideBySide !== app.state.sideBySide)
      resize();
    else
      draw();
  });
  return {
    pictures,
    onDraw: act => moved = act,
    picture: right,
    left,
    places: () => places,
    draw,
    drawNow,
    resize,
    fit,
    fitWidth,
    home,
    follow,
    goToChange,
    windows,
    readable,
    zoom,
    show,
    pick,
    toggle,
    view,
    openAll,
    walk,
    enter,
    rectOf,
    reveal
  };
})();
