// The search: op:mm dtype:bf16 rule:add_rms users>3 and plain words; all must match.
function searchTest(query) {
  const has = (text, part) => String(text || '').toLowerCase().includes(part.toLowerCase());
  const ruleOf = n => [data.madeBy.get(n), data.goneBy.get(n)]
                          .filter(r => r !== undefined)
                          .map(r => data.ruleName(data.rewrites[r]));
  const piecesOf = n => data.groupsOf(n).map(g => data.groups[g].name);
  const numbers = {
    users: n => data.users(n, data.last[n]).length + (data.returned.get(n) || []).length,
    copies: n => data.groupsOf(n).reduce((most, g) => Math.max(most, data.groups[g].siblings.length), 1),
    overlay: n => data.overlay && data.overlay.of.has(n) ? data.overlay.of.get(n) : NaN,
  };
  const compare = {
    '>': (a, b) => a > b,
    '<': (a, b) => a < b,
    '>=': (a, b) => a >= b,
    '<=': (a, b) => a <= b,
    '=': (a, b) => a === b
  };
  const fields = {
    op: want => n => data.op(n) === want || (want.endsWith('*') && data.op(n).startsWith(want.slice(0, -1))),
    dtype: want => n => data.values(n).some(v => data.valueType(v).startsWith(want)),
    type: want => n => has(data.types(n), want),
    rule: want => n => ruleOf(n).some(rule => has(rule, want)),
    group: want => n => has(data.group(n), want),
    source: want => n => has(data.source(n), want),
    name: want => n => data.values(n).some(v => has(data.valueName(v), want)),
    piece: want => n => piecesOf(n).some(name => has(name, want)),
    state: want => n => stateOf(n) === want,
    up: want => traced(want, 'up'),
    down: want => traced(want, 'down'),
  };
  const tests = query.trim().split(/\s+/).filter(Boolean).map(word => {
    const number = /^(users|copies|overlay)(>=|<=|>|<|=)(-?[\d.]+(?:e[-+]?\d+)?)$/i.exec(word);
    if (number) return n => compare[number[2]](numbers[number[1].toLowerCase()](n), +number[3]);
    const field = /^([a-z]+):(.*)$/i.exec(word);
    if (field && fields[field[1].toLowerCase()]) return fields[field[1].toLowerCase()](field[2]);
    return n => has(data.call(n), word) || has(data.types(n), word) || has(data.group(n), word) ||
        has(data.source(n), word) || ruleOf(n).some(rule => has(rule, word));
  });
  return tests.length ? n => tests.every(test => test(n)) : null;
}
/// Returns a predicate for the nodes that a value depends on, or that depend on it, in the visible version.
function traced(name, way) {
  const v = app.state.now, start = window.piecewise.find(name), seen = new Uint8Array(data.count), rest = [];
  const note = n => {
    if (n >= 0 && !seen[n]) seen[n] = 1, rest.push(n);
  };
  note(start);
  while (rest.length) {
    const n = rest.pop();
    if (way === 'down')
      data.users(n, v).forEach(note);
    else
      for (const link of data.links(n))
        if (link.first <= v && v <= link.last && link.value >= data.inputs.length) note(data.valueNode[link.value]);
  }
  return n => seen[n] === 1;
}
/// Returns one byte for each node, nonzero for hits; null without a query.
function searchAll(query) {
  const test = searchTest(query);
  if (!test) return null;
  const out = new Uint8Array(data.count);
  for (let n = 0; n < data.count; ++n) out[n] = test(n) ? 1 : 0;
  return out;
}
