// The pictures: one, or two side by side with one camera. Moving, choosing, opening and closing.
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
      'graph; arrow keys walk along the edges, Enter opens and closes, ? lists all keys; the Table tab says the same in text';
  const left = new Picture(parent, () => app.state.other, 'earlier ' + words),
        right = new Picture(parent, () => app.state.now, words);
  const pictures = [left, right];
  let places = null, pending = false, home = null;

  function lay() {
    const s = app.state, top = s.folded || !data.raw.unfolded ? data.raw.folded : data.raw.unfolded;
    places = new Places(top, s.folded && !!data.raw.unfolded, s.expanded, s.copy);
  }
  function shown() { return app.state.beside ? pictures : [right]; }
  function drawNow() {
    pending = false;
    for (const picture of shown()) picture.draw(places);
  }
  function draw() {
    if (!pending) {
      pending = true;
      requestAnimationFrame(drawNow);
    }
  }
  function resize() {
    left.frame.hidden = !app.state.beside;
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
  /// So that texts can be read, from the top.
  function fitWidth() {
    const w = right.width || 800, h = right.height || 600;
    camera.k = Math.min(1, Math.max(.36, w / (places.width + 60)));
    camera.x = places.width / 2;
    camera.y = Math.min(h / 2 / camera.k - 20, Math.max(places.height / 2, 0));
    if (places.height * camera.k > h) camera.y = h / 2 / camera.k - 20;
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
    const i = what.group !== undefined ? places.itemOfGroup[what.group] :
        what.input !== undefined       ? places.itemOfInput.get(what.input) :
                                         places.itemOfOutput.get(what.output);
    return i === undefined ? null : places.items[i];
  }
  function show(what, near = true) {
    const r = rectOf(what);
    if (!r) return;
    if (near && camera.k < .5) camera.k = .8;
    camera.x = r.x + r.w / 2;
    camera.y = r.y + r.h / 2;
    draw();
  }
  /// Opens what hides a node: its group, and, while equal groups are folded, makes it the copy that is shown.
  function reveal(n) {
    const g = data.groupOf[n];
    if (g < 0) return;
    const s = app.state, shape = data.groups[g].shape;
    if (s.copy[shape] === g && s.expanded.has(g)) return;
    s.copy[shape] = g;
    s.expanded.add(g);
    app.change({}, true);
  }
  function pick(what, center = false) {
    if (what && what.node !== undefined && center) reveal(what.node);
    app.change({picked: what});
    if (what && center) show(what);
  }
  function toggle(g) {
    const s = app.state,
          open = s.folded ? data.copies[data.groups[g].shape].filter(c => s.expanded.has(c)) :
        s.expanded.has(g) ? [g] :
                            [];
    const before = rectOf({group: g}), at = before && [before.x + before.w / 2, before.y];
    if (open.length)
      for (const c of open) s.expanded.delete(c);
    else
      s.expanded.add(g);
    app.change({}, true);
    const after = rectOf({group: g});  // what was opened stays under the eye
    if (at && after) {
      camera.x += after.x + after.w / 2 - at[0];
      camera.y += after.y - at[1];
      draw();
    }
  }
  /// The views: groups closed, groups open, every copy by itself.
  function view(name) {
    const s = app.state;
    s.expanded.clear();
    s.folded = name !== 'all';
    if (name === 'graph')
      for (const g of s.copy) s.expanded.add(g);
    app.change({view: name}, true);
    fitWidth();
  }
  function openAll() {
    app.state.expanded = new Set(data.groups.keys());
    app.change({}, true);
    fitWidth();
  }

  /// From the chosen box along an edge (up, down) or within its rank (left, right).
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
    places.grid.query(x - reach, y - reach, x + reach, y + reach, i => {
      const item = places.items[i];
      if (!item.open) {
        consider({[item.kind]: item.index}, item);
        return;
      }
      const inner = shapePlaces(data.groups[item.index].shape);
      inner.grid.query(x - reach - item.x, y - reach - item.y, x + reach - item.x, y + reach - item.y, k => {
        const b = inner.boxes[k];
        consider({node: data.groups[item.index].nodes[k]}, {x: item.x + b.x, y: item.y + b.y, w: b.w, h: b.h});
      });
    });
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
      const g = data.groupOf[picked.node];
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
    canvas.addEventListener('pointerdown', e => {
      from = [e.clientX, e.clientY, camera.x, camera.y];
      far = false;
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener('pointermove', e => {
      const r = canvas.getBoundingClientRect();
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
      if (from && !far) {
        const r = canvas.getBoundingClientRect(), [x, y] = picture.toWorld(e.clientX - r.left, e.clientY - r.top);
        pick(places.at(x, y));
      }
      from = null;
    });
    canvas.addEventListener('dblclick', e => {
      const r = canvas.getBoundingClientRect(), [x, y] = picture.toWorld(e.clientX - r.left, e.clientY - r.top),
            what = places.at(x, y);
      if (what && what.group !== undefined) toggle(what.group);
    });
  }
  function hover(picture, px, py) {
    const what = places.at(...picture.toWorld(px, py));
    picture.canvas.title = !what ? '' :
        what.node !== undefined  ? data.call(what.node) + '\n' + data.types(what.node) :
        what.group !== undefined ? groupTitle(what.group) + '\n' +
            counted(data.groups[what.group].nodes.length, 'node') :
                                   '';
    picture.canvas.style.cursor = what ? 'pointer' : 'grab';
  }
  window.addEventListener('resize', resize);
  app.listen(moved => {
    if (moved || !places) lay();
    left.note.textContent = 'after ' + data.steps[app.state.other].pass;
    right.note.textContent = app.state.beside ? 'after ' + data.steps[app.state.now].pass : '';
    const beside = !left.frame.hidden;
    if (beside !== app.state.beside)
      resize();
    else
      draw();
  });
  return {
    pictures,
    picture: right,
    left,
    places: () => places,
    draw,
    drawNow,
    resize,
    fit,
    fitWidth,
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
