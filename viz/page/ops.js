// The number of nodes of each op after each pass; a row highlights them in the picture.
(() => {
  const parent = $('ops'), counts = new Map();
  for (let n = 0; n < data.count; ++n) {
    const row = counts.get(data.op(n)) || counts.set(data.op(n), new Array(data.versions).fill(0)).get(data.op(n));
    for (let v = data.first[n]; v <= data.last[n]; ++v) ++row[v];
  }
  const last = data.versions - 1, passes = data.steps.map(step => step.pass || 'nodes');
  const rows = [...counts].sort(([a, x], [b, y]) => y[last] - x[last] || y[0] - x[0] || (a < b ? -1 : 1));
  const search = op => link(op, 'find them in the picture', () => {
    tabs.open('graph');
    $('search').value = 'op:' + op;
    $('search').dispatchEvent(new Event('input'));
    bar.next(1);
  });
  // Omits passes that changed no count, except the first and the last.
  const shown = passes.map((_, v) => v).filter(v => !v || v === last || rows.some(([, row]) => row[v] !== row[v - 1]));
  add(parent,
      make(
          'p',
          counted(rows.length, 'op') +
              (shown.length < passes.length ? '; passes that changed no count are left out' : '')),
      table(
          ['op', ...shown.map(v => passes[v])],
          rows.map(([op, row]) => [search(op), ...shown.map(v => digits(row[v]))]), shown.map((_, i) => i + 1)));
})();
