// All near misses of the last version: by rule, nearest first.
if ($('misses'))
  tabs.onOpen(id => {
    const parent = $('misses');
    if (id !== 'misses' || parent.childElementCount) return;
    if (!data.misses.length) {
      add(parent, make('p', data.raw.whyNoMisses || 'No rule of the passes that ran nearly matches the final graph.'));
      return;
    }
    add(parent,
        make('p', 'Near misses in the last version by rules of the passes that ran: at most four for each node.'));
    const rules = new Map();
    for (const miss of data.misses) rules.set(miss.rule, [...(rules.get(miss.rule) || []), miss]);
    for (const [rule, all] of rules)
      add(parent, make('h2', rule + ' · ' + counted(all.length, 'near miss')),
          longList(all, (list, some) => add(list, ...some.map(missSentence)), 20));
  });
