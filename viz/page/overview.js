// The first screen of a report: cards, the rules that fired, own rules that did not, and a thumbnail.
// The text that the program wrote there is folded below.
(() => {
  const parent = document.querySelector('[data-title=Overview].report');
  if (!parent) return;
  const {steps} = data, last = data.versions - 1;

  function card(title, value, words, tab) {
    const out = button('', 'open ' + title, () => tabs.open(tab));
    out.className = 'card';
    return add(out, make('span', title, 'soft'), make('b', value), make('span', words, 'soft'));
  }
  const change = (a, b) => a === b ? digits(b) : digits(a) + ' → ' + digits(b);
  const cards = make('div', undefined, 'cards');
  const constants = change(steps[0].constants || 0, steps[last].constants || 0);
  add(cards,
      card(
          'nodes', change(steps[0].total, steps[last].total),
          'before and after' + (constants === '0' ? '' : ', ' + constants + ' of them constants'), 'changes'));
  if (data.raw.work) {
    const [before, after, tokens] = data.raw.traffic;
    const moved = before === after ? bytes(after) : bytes(before) + ' → ' + bytes(after);
    const words = after ? moved + ' read and written' + (tokens ? ' at ' + counted(tokens, 'token') : '') :
                          'without views: a launch each, unless fused';
    add(cards, card('ops that compute', change(...data.raw.work), words, 'ops'));
  }
  if (data.classes) {
    const total = data.classes.reduce((sum, c) => sum + c.count, 0),
          captured = (data.raw.stepCaptured || []).reduce((a, b) => a + b, 0),
          why = data.plan && data.plan.reason.replace(/^\S+ is not possible: /, '');
    const words = captured ? 'replayed as one graph each' : 'all run eagerly' + (why ? ': ' + why : '');
    add(cards, card('captured pieces', digits(captured) + ' of ' + digits(total), words, 'pieces'));
  }
  if (data.plan)
    add(cards, card('peak memory', bytes(data.plan.arena), 'and ' + bytes(data.plan.weights) + ' weights', 'memory'));

  // Rules that fired, by pass and rule; rules of own files first, then fusions.
  const tried = Object.entries(data.tried).flatMap(([v, rules]) => rules.map(row => ({v: +v, row})));
  const own = new Set(tried.filter(({row}) => row[5]).map(({row}) => row[0]));
  const fired = new Map();
  data.rewrites.forEach((rewrite, r) => {
    if (rewrite.rule < 0) return;
    const name = data.ruleName(rewrite), key = rewrite.version + ' ' + name;
    const one = fired.get(key) || {name, pass: steps[rewrite.version].pass, first: r, count: 0, gone: 0, made: 0};
    ++one.count;
    one.gone += rewrite.erased.length;
    one.made += rewrite.created.length;
    fired.set(key, one);
  });
  const cleans = name => /^(noop|views|slices)\./.test(name) ? 1 : 0;
  const rules = [...fired.values()].sort(
      (a, b) => own.has(b.name) - own.has(a.name) || cleans(a.name) - cleans(b.name) ||
          (b.gone - b.made) - (a.gone - a.made));
  const firedTable = rows => {
    const out = table(
        ['rule', '×', 'pass', 'nodes', 'where'],
        rows.map(
            rule =>
                [link(rule.name, 'its rewrites', () => chooseRewrite(rule.first)), digits(rule.count), rule.pass,
                 signed(rule.made - rule.gone), data.rulePlace(data.rewrites[rule.first])]),
        [1, 3]);
    out.className = 'fired';
    return out;
  };
  const left = make('div');
  const few = 8;
  if (data.versions > 1) {
    add(left, make('h2', rules.length ? 'Rules that fired' : 'No rule fired'));
    if (rules.length) add(left, firedTable(rules.slice(0, few)));
    if (rules.length > few)
      add(left,
          add(make('details'), make('summary', digits(rules.length - few) + ' more'), firedTable(rules.slice(few))));
    const removed = data.rewrites.reduce((sum, one) => sum + (one.rule < 0 ? one.erased.length : 0), 0);
    if (removed)
      add(left,
          make('p', 'Built-in steps removed ' + counted(removed, 'node') + ' that were dead or duplicates.', 'soft'));
  }

  // Own rules that did not fire, with the first reason.
  const silent = [...own].filter(name => !rules.some(rule => rule.name === name));
  if (silent.length) {
    const reason = name => {
      const miss = data.misses.find(one => one.rule === name);
      if (miss) return add(make('span'), miss.message, miss.at < 0 ? '' : add(make('span'), ' at ', nodeLink(miss.at)));
      const row = tried.find(one => one.row[0] === name).row;
      if (!row[1]) return 'no node has an op of its pattern';
      return row[4].length ? row[4].map(([code, times]) => code + ' ×' + digits(times)).join(', ') : 'never matched';
    };
    const silentTable = names => table(
        ['rule', 'why'],
        names.map(
            name => [$('misses') ? link(name, 'its near misses', () => tabs.open('misses')) : name, reason(name)]));
    add(left, make('h2', 'Your rules that did not fire'), silentTable(silent.slice(0, few)));
    if (silent.length > few)
      add(left,
          add(make('details'), make('summary', digits(silent.length - few) + ' more'), silentTable(silent.slice(few))));
  }
  const idle = new Set(tried.filter(({row}) => !row[5] && !row[3]).map(({row}) => row[0]));
  for (const rule of rules) idle.delete(rule.name);
  if (idle.size)
    add(left,
        add(make('p', undefined, 'soft'), counted(idle.size, 'rule') + ' of the library matched nowhere: ',
            link('Changes › Passes', 'attempts and reasons by rule', () => {
              const passes = document.querySelector('[data-title=Rewriting]');
              tabs.open(passes ? passes.id : 'rewrites');
            }), ' lists the reasons.'));

  const picture = make('img', undefined, 'thumbnail');
  picture.alt = 'the graph: blue boxes are added, dashed ones removed; click to open it';
  picture.addEventListener('click', () => tabs.open('graph'));
  const facts = [...parent.childNodes], folded = make('details');
  add(folded, make('summary', 'What ran: pieces, values computed at load, warnings, files, versions, command'),
      ...facts);
  add(parent, cards, add(make('div', undefined, 'opening'), left, picture), folded);

  let drawn = false;
  const draw = id => {
    if (drawn || id !== parent.id) return;
    drawn = true;
    picture.src = 'data:image/svg+xml,' + encodeURIComponent(exporting.thumbnail(560, 360));
  };
  tabs.onOpen(draw);
})();

// Commands of the report, each with a button that copies it.
for (const code of document.querySelectorAll('pre.command'))
  code.before(button('copy', 'copy the command', e => {
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent.trim());
    e.target.textContent = 'copied';
  }));
