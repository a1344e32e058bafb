// Assembles the page: sends changes to the server, opens files, saves share files.
const page = (() => {
  const pause = 150;  // milliseconds from the last key to a request
  let graph = null;   // {name, symbols, text, id, sent}
  let pipeline = '', timer = 0, drawn = '', edited = false;

  const file = make('span', {id: 'file'});
  const run = make(
      'select',
      {id: 'run', title: 'the pipeline, pass or rule that rewrites the graph', onchange: () => choose(run.value)});
  const symbols = make('input', {
    id: 'symbols',
    placeholder: 'n=arg0_1.0',
    title: 'make input dims of a dump symbolic: name=input.axis,…',
    oninput: () => later()
  });
  const symbolsLabel = make('label', {hidden: true}, 'symbol', symbols);
  const chosen = make('input', {type: 'file', hidden: true, onchange: () => chosen.files[0] && open(chosen.files[0])});
  const openButton = make(
      'button',
      {id: 'open', title: 'a graph, rules or a share file; or drop one anywhere', onclick: () => chosen.click()},
      'Open…');
  const saveButton = make(
      'button',
      {id: 'save', title: 'rules and graph in one file, for `pwr serve FILE` (Ctrl+S)', onclick: () => save()},
      'Save share file');
  const middle = make('div', {
    id: 'middle',
    role: 'separator',
    tabIndex: 0,
    title: 'drag to resize',
    'aria-label': 'width of the rules',
    'aria-orientation': 'vertical'
  });
  const drop = make('div', {id: 'drop', hidden: true}, 'drop a dump, graph.json, .pwg, .pwr or a share file');
  const two = make(
      'div', {id: 'two'}, make('section', {id: 'left', 'aria-label': 'rules'}, editor.box, problems.box), middle,
      picture.box);
  document.body.append(
      make(
          'header', {}, make('h1', {}, 'Piecewise'), file, make('label', {}, 'run', run), symbolsLabel,
          make('span', {className: 'space'}), openButton, saveButton, chosen),
      two, drop);

  const counted = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
  const symbolList = () => symbols.value.split(/\s+/).filter(Boolean);
  const shared = () => ({
    format: settings.format,
    rules: editor.text(),
    pipeline,
    ...(graph ? {graph: {name: graph.name, symbols: symbolList(), text: ''}} : {}),
  });
  function setGraph(given) {
    graph = given && given.text ? {...given, id: randomId(), sent: false} : null;
    file.textContent = graph ? graph.name : 'no graph';
    symbols.value = graph ? (graph.symbols || []).join(' ') : '';
    symbolsLabel.hidden = !graph || /^\s*(\{|graph\b)/.test(graph.text);
    drawn = '';
    if (!graph) picture.clear();
  }
  function setShare(share) {
    pipeline = share.pipeline;
    editor.set(share.rules);
    setGraph(share.graph);
    edited = false;
    now();
  }
  function choose(name) {
    pipeline = name;
    later(0);
  }
  function later(after = pause) {
    edited = true;
    problems.say('…', 'busy');
    clearTimeout(timer);
    timer = setTimeout(now, after);
  }
  /// Sends a request, with the graph's text only if the server lacks it.
  async function question() {
    const ask = whole => server.ask(
        'run', {ask: 'run', picture: drawn, share: shared()}, whole && graph ? graph.text : '', graph ? graph.id : '');
    const mine = graph, answer = await ask(!graph?.sent);
    if (answer?.gone && graph === mine) return ask(true);
    if (mine && answer) mine.sent = true;
    return answer;
  }
  async function now() {
    clearTimeout(timer);
    if (new Blob([editor.text()]).size > settings.most_rules)
      return problems.say('the rules are too long: at most ' + settings.most_rules + ' bytes', 'bad');
    problems.say('checking…', 'busy');
    const began = performance.now(), answer = await question();
    if (answer) show(answer, Math.round(performance.now() - began));
  }
  function show(answer, took) {
    const errors = answer.problems.filter(p => p.severity === 'error').length,
          warnings = answer.problems.length - errors;
    editor.mark(answer.problems.filter(p => p.where === 'rules'));
    problems.show(answer.problems, answer.log);
    const words = errors ? counted(errors, 'mistake') : 'no mistakes';
    problems.say(
        (errors ? '✗ ' : '✓ ') + words + (warnings ? ', ' + counted(warnings, 'warning') : '') +
            (answer.ran && !errors ? ' · ran ' + answer.ran : '') + ' · ' + took + ' ms',
        errors ? 'bad' : 'good');
    if (answer.strategies.length || !errors) offer(answer.strategies, answer.ran);
    if (answer.page) picture.show(answer.page);
    if (answer.picture) {
      drawn = answer.picture;
      if (!answer.page) picture.fresh();
    } else if (graph) {
      picture.stale();
    }
  }
  /// Lists what can be run; the empty value selects the default.
  function offer(strategies, ran) {
    const option = (value, text) => make('option', {value}, text),
          own = strategies.filter(s => s.kind !== 'used pipeline');
    run.replaceChildren(option('', own.length ? 'the first: ' + own[0].name : 'nothing'));
    for (const kind of ['pipeline', 'pass', 'rule', 'used pipeline']) {
      const some = strategies.filter(s => s.kind === kind);
      if (some.length) run.append(make('optgroup', {label: kind + 's'}, ...some.map(s => option(s.name, s.name))));
    }
    if (pipeline && !strategies.some(s => s.name === pipeline)) run.append(option(pipeline, pipeline));
    run.value = pipeline;
  }
  async function open(given) {
    chosen.value = '';
    if (given.size > settings.most_share)
      return refuse(given.name + ' has ' + given.size + ' bytes, but at most ' + settings.most_share + ' are allowed');
    problems.say('opening ' + given.name + '…', 'busy');
    const answer = await server.ask('file', {ask: 'open', file: given.name}, given);
    if (!answer) return;
    if (!answer.opened) {
      problems.show(answer.problems, []);
      return problems.say('✗ ' + given.name + ' was not opened', 'bad');
    }
    if (answer.opened === 'share') return setShare(answer.share);
    edited = true;
    if (answer.opened === 'rules')
      editor.set(answer.share.rules);
    else
      setGraph({name: given.name, symbols: [], text: await given.text()});
    now();
  }
  function refuse(message) {
    problems.show([{severity: 'error', code: '', message, where: 'graph', place: '', related: []}], []);
    problems.say('✗ not opened', 'bad');
  }
  async function save() {
    const answer = await server.ask('file', {ask: 'share', share: shared()}, graph ? graph.text : '');
    if (!answer?.document) return answer && problems.show(answer.problems, []);
    const link = make('a', {
      href: URL.createObjectURL(new Blob([answer.document], {type: 'application/json'})),
      download: (graph ? graph.name : 'rules').replace(/\.[^.]*$/, '') + '.share'
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    edited = false;
  }

  editor.field.addEventListener('input', () => later());
  // Files can be dropped anywhere.
  const hasFiles = event => [...(event.dataTransfer?.types || [])].includes('Files');
  for (const kind of ['dragenter', 'dragover'])
    window.addEventListener(kind, event => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      drop.hidden = false;
      picture.shield(true);
    });
  window.addEventListener('dragleave', event => {
    if (event.relatedTarget === null) drop.hidden = true;
  });
  window.addEventListener('drop', event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.hidden = true;
    picture.shield(false);
    if (event.dataTransfer.files.length !== 1) return refuse('open one file at a time');
    open(event.dataTransfer.files[0]);
  });
  window.addEventListener('keydown', event => {
    if ((event.ctrlKey || event.metaKey) && event.key === 's') {
      event.preventDefault();
      save();
    }
  });
  window.addEventListener('beforeunload', event => {
    if (edited) event.preventDefault();
  });
  // Resizes the two halves with the pointer or with keys.
  const widen = percent => {
    const width = Math.min(75, Math.max(15, percent));
    two.style.setProperty('--left', width + '%');
    middle.setAttribute('aria-valuenow', Math.round(width));
  };
  widen(38);
  middle.addEventListener('pointerdown', event => {
    middle.setPointerCapture(event.pointerId);
    picture.shield(true);
    middle.onpointermove = move => widen(100 * move.clientX / innerWidth);
    middle.onpointerup = () => {
      middle.onpointermove = null;
      picture.shield(false);
    };
  });
  middle.addEventListener('keydown', event => {
    const by = {ArrowLeft: -2, ArrowRight: 2}[event.key];
    if (by) widen(+middle.getAttribute('aria-valuenow') + by);
  });

  server.get('/share')
      .then(response => response.json())
      .then(setShare, () => problems.say('✗ the server does not answer', 'bad'));
  return {open};
})();
