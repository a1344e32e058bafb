// The most important facts as sentences, each with a link to the tab that has details.

const summary = () => {
  const box = make('div'), {steps} = data;
  box.id = 'summary';
  const say = (words, tab, title) => {
    const p = add(make('p'), words);
    if (tab && $(tab)) add(p, ' ', link('more', title, () => tabs.open(tab)));
    add(box, p);
  };
  const size = s => s.added + s.removed + s.changed;
  if (data.versions > 1) {
    const most = steps.reduce((m, s, i) => i && (!m || size(s) > size(steps[m])) ? i : m, 0), s = steps[most];
    // Constants are drawn in their readers, so they are not among the nodes that a pass added or removed.
    const constants = (steps[most - 1].constants || 0) - (s.constants || 0);
    const folded =
        constants ? '; ' + counted(Math.abs(constants), 'constant') + (constants > 0 ? ' fewer' : ' more') : '';
    if (size(s))
      say(add(make('span'), 'Pass ', link(s.pass, 'go there', () => showPass(most)),
              ' changed most: ' + counted(s.added, 'node') + ' added, ' + digits(s.removed) + ' removed, ' +
                  digits(s.changed) + ' changed' + folded + '.'),
          'changes', 'added and removed lines');
    else
      say('No pass changed a node.');
    const fired = new Map(), place = r => [...r.created, ...r.matched].find(node => node >= 0);
    for (const rewrite of data.rewrites)
      if (rewrite.rule >= 0) {
        const key = data.ruleName(rewrite) + ' ' + steps[rewrite.version].pass;
        const one = fired.get(key) ||
            {name: data.ruleName(rewrite), pass: steps[rewrite.version].pass, count: 0, first: rewrite};
        ++one.count;
        if (place(one.first) === undefined) one.first = rewrite;
        fired.set(key, one);
      }
    const rules = [...fired.values()].sort((a, b) => b.count - a.count);
    const where = r => {
      const n = place(r.first);
      return n === undefined ? '' : add(make('span'), r.count > 1 ? ' first at ' : ' at ', nodeLink(n));
    };
    if (rules.length) {
      const words = make('span');
      add(words, counted(rules.length, 'rule') + ' fired: ');
      rules.slice(0, 4).forEach(
          (r, i) => add(words, i ? '; ' : '', rewriteName(r), ' ×' + digits(r.count) + ' in ' + r.pass, where(r)));
      if (rules.length > 4) add(words, '; and ' + digits(rules.length - 4) + ' more');
      say(add(words, '.'), 'rewrites', 'the matches and replacements of each');
    } else if ($('rewrites'))
      say('No rule fired.', 'rewrites', 'all passes');
  }
  const missed = [...new Set(data.misses.filter(m => m.at >= 0 || m.nodes.length).map(m => m.rule))];
  if (missed.length)
    say(counted(missed.length, 'rule') + ' match in part: choose a node to see why it is not rewritten.', 'misses',
        'all of them');
  if (data.classes) say(pieceSentence(), 'pieces', 'each piece');
  if (data.plan && data.raw.padding) say(paddingSentence(300), 'sizes', 'other token counts');
  if (data.plan) say(memoryFacts().sentence, 'memory', 'lifetimes and offsets');
  return box;
};
const rewriteName = r => link(r.name, data.rulePlace(r.first), () => chooseRewrite(data.rewrites.indexOf(r.first)));
