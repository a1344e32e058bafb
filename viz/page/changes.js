// The differences between the texts of the two visible versions, pass by pass: added and removed
// lines, each with its neighbours.
(() => {
  const parent = $('changes'), around = 2;
  /// Returns the lines of both versions in order: mark, text, node.
  function lines() {
    const {base, now} = app.state, out = [], alive = (n, v) => data.first[n] <= v && v <= data.last[n];
    for (let n = 0; n < data.count; ++n) {
      const was = alive(n, base) ? data.statement(n, base) : null, is = alive(n, now) ? data.statement(n, now) : null;
      if (was === is) {
        if (is !== null) out.push([' ', is, n]);
        continue;
      }
      if (was !== null) out.push(['−', was, n]);
      if (is !== null) out.push(['+', is, n]);
    }
    return out;
  }
  function draw() {
    if (parent.hidden) return;
    parent.replaceChildren();
    if (data.versions < 2) {
      add(parent, make('p', 'There is only one version of the graph, so there is nothing to compare.'));
      return;
    }
    const choice = make('select');
    choice.setAttribute('aria-label', 'the pass whose changes are shown');
    const options = [['all', versionName(0) + ' → ' + versionName(data.versions - 1) + ', all passes']];
    for (const v of visibleSteps())
      if (v) options.push([v, versionName(v) + ' (pass ' + v + ')']);
    for (const [value, words] of options) {
      const o = make('option', words);
      o.value = value;
      choice.append(o);
    }
    choice.value = showsAll() ? 'all' : app.state.now - app.state.base === 1 ? String(app.state.now) : 'all';
    choice.addEventListener('change', () => {
      if (choice.value === 'all')
        showAll();
      else
        showPass(+choice.value);
      parent.querySelector('select').focus();
    });
    const all = lines(), marked = all.map(([mark]) => mark !== ' ');
    const plus = all.filter(([mark]) => mark === '+').length, minus = all.filter(([mark]) => mark === '−').length;
    add(parent,
        add(make('p'), 'What ', choice,
            ' changed: ' + counted(plus, 'line') + ' added, ' + digits(minus) +
                ' removed. A node that reads another value, or has other attributes, is a line removed and one added.'));
    const shown = [];
    let skipped = 0;
    all.forEach((line, i) => {
      let near = false;
      for (let k = Math.max(0, i - around); k <= Math.min(all.length - 1, i + around); ++k) near = near || marked[k];
      if (!near) {
        ++skipped;
        return;
      }
      if (skipped) shown.push(['…', counted(skipped, 'line') + ' alike', -1]);
      skipped = 0;
      shown.push(line);
    });
    if (skipped) shown.push(['…', counted(skipped, 'line') + ' alike', -1]);
    add(parent, longList(shown, (list, some) => {
          const code = make('pre', undefined, 'diff');
          for (const [mark, words, n] of some) {
            const row = make('span', undefined, mark === '+' ? 'plus' : mark === '−' ? 'minus' : '');
            add(row, mark + ' ');
            if (n < 0)
              add(row, words);
            else {
              const b = link(words, 'show in the graph', () => {
                tabs.open('graph');
                stage.pick({node: n}, true);
              });
              add(row, b);
            }
            add(code, row, '\n');
          }
          add(list, code);
        }));
  }
  app.listen(draw);
  tabs.onOpen(draw);
})();
