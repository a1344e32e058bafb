// The table: the same as the picture, for those who do not see it. It follows the pass and the search.
(() => {
  const parent = $('table'), words = make('p'), box = make('div');
  add(parent, words, box);
  function draw() {
    if (parent.hidden) return;
    const rows = [];
    for (let n = 0; n < data.count; ++n)
      if (data.state(n, app.state.now) !== 'off' && (!app.state.found || app.state.found[n])) rows.push(n);
    words.textContent = counted(rows.length, 'node') + ' after ' + (data.steps[app.state.now].pass || 'reading') +
        (app.state.found ? ', found by “' + app.state.query + '”' : '') + '. ' +
        'Marks: + added, − removed, ~ changed, ◎ matched and kept.';
    box.replaceChildren(longList(
        rows,
        (list, some) =>
            add(list,
                table(
                    [
                      '', 'name', 'op', 'attributes', 'type', 'reads', 'readers', data.classes ? 'piece' : 'in',
                      'group', 'source', 'made by', ...(data.overlay ? [data.overlay.title] : [])
                    ],
                    some.map(
                        n =>
                            [glyphs[data.state(n, app.state.now)], nodeLink(n), data.op(n), data.attributes(n),
                             data.types(n), data.operands(n).map(data.valueName).join(', '),
                             String(data.users(n, Math.min(app.state.now, data.last[n])).length),
                             data.groupOf[n] < 0 ? '' : data.groups[data.groupOf[n]].name, data.group(n),
                             data.source(n), data.madeBy.has(n) ? rewriteLink(data.madeBy.get(n)) : '',
                             ...(data.overlay ? [data.overlay.of.has(n) ? String(data.overlay.of.get(n)) : ''] : [])]),
                    [6]))));
  }
  app.listen(draw);
  tabs.onOpen(draw);
})();
