// The rule editor: a plain text field above a colored copy of its text, with marks at mistakes.
const editor = (() => {
  const words = settings.words.map(([kind, pattern]) => [kind, new RegExp(pattern, 'y')]);
  const field = make('textarea', {
    id: 'text',
    spellcheck: false,
    autocapitalize: 'off',
    autocomplete: 'off',
    wrap: 'off',
    'aria-label': 'rules',
    'aria-describedby': 'state',
    title: ''
  });
  const colours = make('pre', {id: 'colours', 'aria-hidden': 'true'});
  const sheet = make('div', {id: 'sheet'}, colours, field);
  const box = make('div', {id: 'editor'}, sheet);
  let marks = [];       // {line, column, end_line, end_column, severity, message}
  let shown = [];       // by line: the text and marks that it was drawn from
  let before = [''];    // lines at the last change
  let leaving = false;  // Escape lets Tab leave the field

  /// [from, to, class], in the order of the line.
  function tokens(line) {
    const out = [];
    for (let at = 0; at < line.length;) {
      let found = null;
      for (const [kind, pattern] of words) {
        pattern.lastIndex = at;
        const match = pattern.exec(line);
        if (match && match[0]) {
          found = [at, at + match[0].length, 'c-' + kind];
          break;
        }
      }
      if (found) out.push(found);
      at = found ? found[1] : at + 1;
    }
    return out;
  }
  const marksOf = number => marks.filter(m => m.line <= number && number <= Math.min(m.end_line, m.line + 50));
  /// Returns the columns where a mark begins and ends in a line.
  const within = (mark, number, length) =>
      [mark.line === number ? Math.min(mark.column, length) : 0,
       mark.end_line === number ? Math.min(mark.end_column, length) : length];
  function drawn(line, number, own) {
    const element = make('div', {className: own.length ? 'line bad' : 'line'}), cuts = new Set([0, line.length]),
          spans = tokens(line);
    for (const [from, to] of spans) cuts.add(from).add(to);
    const places = own.map(m => within(m, number, line.length));
    for (const [from, to] of places) cuts.add(from).add(to);
    const at = [...cuts].sort((a, b) => a - b);
    for (let i = 0; i + 1 < at.length; ++i) {
      const [from, to] = [at[i], at[i + 1]], kind = spans.find(s => s[0] <= from && to <= s[1]);
      const marked = own.filter((_, k) => places[k][0] <= from && to <= places[k][1]);
      const worst = marked.find(m => m.severity === 'error') || marked[0];
      element.append(make(
          'span', {className: [kind ? kind[2] : '', worst ? 'mark ' + worst.severity : ''].join(' ').trim()},
          line.slice(from, to)));
    }
    own.forEach((m, k) => {
      if (m.line === number && places[k][0] === places[k][1])
        element.append(make('span', {className: 'mark empty'}, ' '));
    });
    const here = own.filter(m => m.line === number);
    if (here.length) {
      const first = here.find(m => m.severity === 'error') || here[0], [reason] = first.message.split('\n');
      element.append(make(
          'span', {className: 'lens ' + first.severity},
          make(
              'span', {},
              reason + (first.help ? ' — ' + first.help : '') +
                  (here.length > 1 ? ' (+' + (here.length - 1) + ')' : ''))));
    }
    if (!line && !here.length) element.append('​');
    return element;
  }
  /// Draws the lines that changed.
  function draw() {
    const lines = field.value.split('\n'), next = [];
    lines.forEach((line, number) => {
      const own = marksOf(number),
            key = JSON.stringify(
                [line, own.map(m => [within(m, number, line.length), m.line === number, m.severity, m.message])]);
      next.push(key);
      if (shown[number] === key) return;
      const element = drawn(line, number, own);
      if (colours.children[number])
        colours.children[number].replaceWith(element);
      else
        colours.append(element);
    });
    while (colours.children.length > lines.length) colours.lastChild.remove();
    shown = next;
  }
  /// Moves marks with their lines until the next check.
  function follow() {
    const lines = field.value.split('\n');
    let same = 0;
    while (same < lines.length && same < before.length && lines[same] === before[same]) ++same;
    const by = lines.length - before.length;
    if (by)
      marks = marks.filter(m => m.line !== same)
                  .map(m => m.line > same ? {...m, line: m.line + by, end_line: m.end_line + by} : m);
    before = lines;
  }
  function insert(text) {
    field.setRangeText(text, field.selectionStart, field.selectionEnd, 'end');
    field.dispatchEvent(new Event('input'));
  }
  field.addEventListener('input', () => {
    follow();
    draw();
  });
  field.addEventListener('keydown', event => {
    if (event.key === 'Tab' && !event.shiftKey && !leaving) {
      event.preventDefault();
      insert('  ');
    } else if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey) {
      const line = field.value.slice(0, field.selectionStart).split('\n').pop(),
            indent = line.match(/^ */)[0] + (/\{\s*$/.test(line) ? '  ' : '');
      if (indent) {
        event.preventDefault();
        insert('\n' + indent);
      }
    }
    leaving = event.key === 'Escape' || (leaving && event.key === 'Shift');
  });
  const offset = (line, column) =>
      field.value.split('\n').slice(0, line).reduce((sum, text) => sum + text.length + 1, 0) + column;
  return {
    box,
    field,
    text: () => field.value,
    set(text) {
      field.value = text.replace(/\r\n?/g, '\n');
      marks = [];
      before = field.value.split('\n');
      draw();
    },
    mark(problems) {
      marks = problems;
      draw();
    },
    /// Moves the cursor to a location and scrolls it into view.
    go(line, column) {
      field.focus({preventScroll: true});
      const at = offset(line, column);
      field.setSelectionRange(at, at);
      colours.children[line]?.scrollIntoView({block: 'nearest'});
      box.scrollLeft = 0;
    }
  };
})();
