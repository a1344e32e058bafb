// Near misses of the last version, a row for each rule and reason: first the whole matches that
// something kept back, then those with the fewest missing nodes. Rules that only clean up, and
// patterns of which less than half matched, are folded.
if ($('misses'))
  tabs.onOpen(id => {
    const parent = $('misses');
    if (id !== 'misses' || parent.childElementCount) return;
    if (!data.misses.length) {
      add(parent, make('p', data.raw.whyNoMisses || 'No rule of the passes that ran nearly matches the final graph.'));
      return;
    }
    const groups = new Map();
    for (const miss of data.misses) {
      // Names of nodes differ between places that miss for the same reason.
      const key = [miss.rule, miss.code, miss.matched, miss.size, miss.message.replace(/%[\w.]+/g, '%')].join('|');
      if (!groups.has(key)) groups.set(key, {miss, all: []});
      groups.get(key).all.push(miss);
    }
    const missing = group => group.miss.size - group.miss.matched;
    const own = new Set(Object.values(data.tried).flat().filter(row => row[5]).map(row => row[0]));
    const mine = group => own.has(group.miss.rule) ? 1 : 0;
    const rows = [...groups.values()].sort(
        (a, b) => mine(b) - mine(a) || missing(a) - missing(b) || b.miss.matched - a.miss.matched ||
            b.all.length - a.all.length);
    const noise = group => !mine(group) &&
        (/^(noop|views|slices)\./.test(group.miss.rule) || missing(group) > group.miss.matched ||
         group.miss.matched < 2);
    const show = list => longList(
        list,
        (box, some) =>
            add(box,
                table(
                    ['rule', 'matched', '×', 'why', 'at'], some.map(({miss, all}) => {
                      const places = all.filter(one => one.at >= 0), at = make('span');
                      places.slice(0, 3).forEach((one, i) => add(at, i ? ', ' : '', nodeLink(one.at)));
                      if (places.length > 3) add(at, ', … ' + digits(places.length - 3) + ' more');
                      const why = add(make('span'), miss.message + ' (' + miss.code + '). ');
                      if (miss.help) add(why, make('span', 'Help: ' + miss.help + '.', 'soft'));
                      return [make('b', miss.rule), miss.matched + ' of ' + miss.size, digits(all.length), why, at];
                    }),
                    [2])),
        60);
    const near = rows.filter(group => !noise(group)), rest = rows.filter(noise);
    add(parent,
        make(
            'p',
            'Places in the last version where a rule of the passes that ran nearly matches, at most four for each ' +
                'node. Nearest first: in “3 of 3” all nodes matched, and a guard or another reader kept the rule back. ' +
                'Your own rules come first.'));
    const meaning = code => data.raw.stops[code] || '', stops = new Map();
    const named = code => meaning(code) ? meaning(code).split(':')[0] + ' (' + code + ')' : code;
    for (const group of near) stops.set(group.miss.code, (stops.get(group.miss.code) || 0) + group.all.length);
    if (stops.size)
      add(parent,
          make(
              'p',
              'What stops rules: ' +
                  [...stops]
                      .sort((a, b) => b[1] - a[1])
                      .map(([code, times]) => named(code) + ' ×' + digits(times))
                      .join(', ') +
                  '. “pwr explain N04” describes a reason.',
              'soft'));
    if (near.length)
      add(parent, show(near));
    else
      add(parent, make('p', 'No rule matched half of its pattern.'));
    if (rest.length)
      add(parent,
          add(make('details'),
              make(
                  'summary',
                  counted(rest.length, 'row') +
                      ' more: less than half of the pattern matched, or the rule only cleans up'),
              show(rest)));
  });
