// The page's address holds the view: tab, versions, selection, camera and groups, so that a link
// restores it: #graph;pass=3;base=2;pick=node:add_7;camera=120,640,1;open=piece_0
const share = (() => {
  const nameOf = picked => {
    if (!picked) return '';
    if (picked.node !== undefined) return 'node:' + data.name(picked.node);
    if (picked.group !== undefined) return 'group:' + data.groupPath(picked.group);
    return picked.input !== undefined ? 'input:' + data.inputs[picked.input].name : 'output:' + picked.output;
  };
  const named = words => {
    const at = words.indexOf(':'), kind = words.slice(0, at), name = words.slice(at + 1);
    const found = {
      node: () => window.piecewise.find(name),
      group: () => data.groups.findIndex((_, g) => data.groupPath(g) === name),
      input: () => data.inputs.findIndex(i => i.name === name),
      output: () => data.raw.outputs.some((slot, i) => i % 4 === 0 && slot === +name) ? +name : -1
    }[kind];
    const index = found ? found() : -1;
    return index < 0 ? null : {[kind]: index};
  };
  function text() {
    const s = app.state, round = x => Math.round(x * 1000) / 1000, parts = [tabs.current()];
    const put = (key, value) => {
      if (value !== '' && value !== undefined) parts.push(key + '=' + encodeURIComponent(value));
    };
    if (data.versions > 1) put('pass', s.now), put('base', s.base);
    put('pick', nameOf(s.picked));
    put('camera', [camera.x, camera.y, camera.k].map(round).join(','));
    put('view', s.view);
    if (s.expanded.size <= 64) put('open', [...s.expanded].map(data.groupPath).join(','));
    if (s.sideBySide) put('side', 1);
    if (s.ghosts) put('hidden', 1);
    if (s.labels) put('types', 1);
    put('find', s.query);
    return '#' + parts.join(';');
  }
  /// Restores the view from the address; returns false if it has at most a tab.
  function read() {
    const parts = location.hash.slice(1).split(';'), given = new Map();
    for (const part of parts.slice(1)) {
      const at = part.indexOf('=');
      try {
        given.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
      } catch { /* not written by this page */
      }
    }
    if (!given.size) return false;
    const s = app.state, version = key => {
      const v = Math.floor(+given.get(key));
      return given.has(key) && v >= 0 && v < data.versions ? v : undefined;
    };
    s.now = version('pass') ?? s.now;
    s.base = version('base') ?? s.base;
    s.sideBySide = given.get('side') === '1' && data.versions > 1;
    s.ghosts = given.get('hidden') === '1';
    s.labels = given.get('types') === '1';
    const view = given.get('view');
    if (['overview', 'graph', 'all'].includes(view)) {
      s.view = view;
      s.folded = view !== 'all';
    }
    if (given.has('open')) {
      const open = new Set(given.get('open').split(','));
      s.expanded = new Set([...data.groups.keys()].filter(g => open.has(data.groupPath(g))));
    }
    app.change({picked: given.has('pick') ? named(given.get('pick')) : null}, true);
    if (given.has('find')) {
      $('search').value = given.get('find');
      $('search').dispatchEvent(new Event('input'));
    }
    const at = (given.get('camera') || '').split(',').map(Number);
    if (at.length === 3 && at.every(Number.isFinite) && at[2] > 0) {
      [camera.x, camera.y] = at;
      camera.k = Math.min(8, Math.max(1e-4, at[2]));
      stage.draw();
    }
    return true;
  }
  let timer = 0;
  function note() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      try {
        history.replaceState(null, '', text());
      } catch { /* inside a notebook the page has no address */
      }
      if (parent !== window) parent.postMessage({seen: text()}, '*');  // lets an embedding page restore the view
    }, 200);
  }
  app.listen(note);
  tabs.onOpen(note);
  stage.onDraw(note);
  window.addEventListener('hashchange', () => {
    tabs.start();
    read();
  });
  return {text, read, note};
})();
