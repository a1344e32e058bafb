// The table: a text alternative to the picture. It follows the versions and the search, and sorts by
// any column.
(() => {
  const parent = $('table'), words = make('p'), box = make('div');
  add(parent, words, box);
  let by = -1, down = false;  // sort column; −1: the order of the graph
  const columns = [
    ['', n => glyphs[stateOf(n)]], ['name', n => data.name(n), nodeLink], ['op', data.op],
    ['attributes', data.attributes], ['type', data.types],
    ['reads', n => data.operands(n).map(data.valueName).join(', ')],
    ['readers', n => data.users(n, Math.min(app.state.now, data.last[n])).length],
    [data.classes ? 'piece' : 'in', n => data.groupOf[n] < 0 ? '' : data.groups[data.groupOf[n]].name],
    ['group', data.group], ['source', data.source],
    [
      'made by', n => data.madeBy.has(n) ? data.ruleName(data.rewrites[data.madeBy.get(n)]) : '',
      n => data.madeBy.has(n) ? rewriteLink(data.madeBy.get(n)) : ''
    ],
    ...(data.overlay ? [[data.overlay.title, n => data.overlay.of.has(n) ? data.overlay.of.get(n) : '']] : [])
  ];
  const numbers =
      columns.map((_, i) => i).filter(i => columns[i][0] === 'readers' || (data.overlay && i === columns.length - 1));
  function head(element) {
    [...element.querySelectorAll('th')].forEach((th, i) => {
      const title = columns[i][0] || 'mark', order = by !== i ? 'none' : down ? 'descending' : 'ascending';
      th.setAttribute('aria-sort', order);
      const b = link(title + {none: '', ascending: ' ▲', descending: ' ▼'}[order], 'sort by ' + title, () => {
        [by, down] = by !== i ? [i, false] : down ? [-1, false] : [i, true];
        draw();
        box.querySelectorAll('th button')[i].focus();
      });
      th.replaceChildren(b);
    });
    return element;
  }
  function sorted(rows) {
    if (by < 0) return rows;
    const keys = new Map(rows.map(n => [n, columns[by][1](n)]));
    const order = (a, b) => typeof a === 'number' && typeof b === 'number' ? a - b :
        String(a) < String(b)                                              ? -1 :
        String(a) > String(b)                                              ? 1 :
                                                                             0;
    return rows.sort((a, b) => (down ? -1 : 1) * order(keys.get(a), keys.get(b)) || a - b);
  }
  function draw() {
    if (parent.hidden) return;
    const rows = [];
    for (let n = 0; n < data.count; ++n)
      if (stateOf(n) !== 'off' && (!app.state.found || app.state.found[n])) rows.push(n);
    words.textContent = counted(rows.length, 'node') + ' of ' + shownName() +
        (app.state.found ? ', found by “' + app.state.query + '”' : '') + '. ' +
        'Marks: + added, − removed, ~ changed, ◎ matched and kept.';
    box.replaceChildren(longList(
        sorted(rows),
        (list, some) =>
            add(list,
                head(table(
                    columns.map(column => column[0]),
                    some.map(n => columns.map(([, value, shown]) => shown ? shown(n) : String(value(n)))), numbers)))));
  }
  app.listen(draw);
  tabs.onOpen(draw);
})();
