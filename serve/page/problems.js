// The diagnostics below the rules, each with its location, its code and a hint.
const problems = (() => {
  const state = make('p', {id: 'state', role: 'status'});
  const list = make('ul', {id: 'problems'});
  const log = make(
      'details', {id: 'log', hidden: true}, make('summary', {}, 'messages of the import and the run'), make('pre'));
  const box = make('div', {id: 'below'}, state, list, log);
  const rank = p => p.severity === 'error' ? 0 : 1;
  function row(p) {
    const [reason, ...rest] = p.message.split('\n');
    const help = rest.filter(line => line.startsWith('help: ')),
          notes = rest.filter(line => !line.startsWith('help: ')).concat(p.related);
    const item = make(
        'li', {className: p.severity},
        make('span', {className: 'sign', title: p.severity}, p.severity === 'error' ? '✗' : '!'));
    if (p.where === 'rules')
      item.append(
          make(
              'button', {className: 'link', title: 'go there', onclick: () => editor.go(p.line, p.column)},
              (p.line + 1) + ':' + (p.column + 1)),
          ' ');
    else if (p.place)
      item.append(make('code', {}, p.place), ' ');
    item.append(reason, ' ');
    if (p.code) item.append(make('span', {className: 'code'}, p.code));
    if (notes.length) item.append(make('p', {}, notes.join('\n')));
    for (const line of help) item.append(make('p', {className: 'help'}, line));
    return item;
  }
  return {
    box,
    say(text, kind) {
      state.textContent = text;
      state.className = kind;
    },
    show(found, lines) {
      const sorted = [...found].sort(
          (a, b) => rank(a) - rank(b) || (a.line ?? -1) - (b.line ?? -1) || (a.column ?? 0) - (b.column ?? 0));
      list.replaceChildren(...sorted.map(row));
      log.hidden = !lines.length;
      log.querySelector('pre').textContent = lines.join('\n');
    }
  };
})();
