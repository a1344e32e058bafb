// The panels around the picture: the bar with views and search, the passes, and details of the selection.

const link = (words, title, act) => {
  const b = button(words, title, act);
  b.className = 'link';
  return b;
};
const nodeLink = n => link(data.name(n), data.call(n), () => {
  tabs.open('graph');
  stage.pick({node: n}, true);
});
const rewriteLink = r => {
  const rewrite = data.rewrites[r];
  return link(
      (rewrite.rule < 0 ? 'pass ' : 'rule ') + data.ruleName(rewrite), data.rulePlace(rewrite), () => chooseRewrite(r));
};

const bar = (() => {
  const parent = $('bar'), search = make('input'), count = make('span', undefined, 'count');
  search.type = 'search';
  search.id = 'search';
  search.placeholder = 'search: op:mm';
  search.title = 'op:mm dtype:bf16 rule:add_rms users>3';
  search.setAttribute('aria-label', 'search nodes');
  const views = [
    ['overview', 'Overview', 'groups closed, equal ones folded (o)'],
    ['graph', 'Graph', 'groups open, equal ones drawn once (g)']
  ];
  if (data.raw.whole.unfolded)
    views.push([
      'all', data.classes ? 'All pieces' : 'All groups', 'nothing folded: every copy is drawn, in stitching order (a)'
    ]);
  const buttons = views.map(([name, words, title]) => {
    const b = button(words, title, () => stage.view(name));
    b.dataset.view = name;
    return b;
  });
  const sideBySide = button(
      'Side by side', 'the two versions side by side (s)', () => app.change({sideBySide: !app.state.sideBySide}));
  const other = make('select');
  other.setAttribute('aria-label', 'the version to compare with');
  data.steps.forEach((step, i) => {
    const o = make('option', 'since ' + (i ? step.pass + (data.versions > 2 ? ' (' + i + ')' : '') : 'the input'));
    o.value = i;
    other.append(o);
  });
  other.addEventListener('change', () => {
    app.change({base: +other.value});
    stage.follow();
  });
  let hits = [], at = -1;
  const next = by => {
    if (!hits.length) return;
    at = (at + by + hits.length) % hits.length;
    stage.pick({node: hits[at]}, true);
    count.textContent = (at + 1) + ' of ' + digits(hits.length);
  };
  search.addEventListener('input', () => {
    const found = searchAll(search.value);
    hits = [];
    at = -1;
    if (found)
      found.forEach((hit, n) => {
        if (hit) hits.push(n);
      });
    count.textContent = found ? digits(hits.length) + ' of ' + counted(data.count, 'node') : '';
    app.change({query: search.value, found});
  });
  search.addEventListener('keydown', e => {
    if (e.key === 'Enter') next(e.shiftKey ? -1 : 1);
    if (e.key === 'Escape') {
      clear();
      stage.picture.canvas.focus();
    }
  });
  const clear = () => {
    if (!search.value) return;
    search.value = '';
    search.dispatchEvent(new Event('input'));
  };
  /// Finds all that the chosen node depends on (up), or all that depends on it (down).
  const trace = way => {
    const p = app.state.picked;
    if (!p || p.node === undefined) return;
    search.value = way + ':' + data.name(p.node);
    search.dispatchEvent(new Event('input'));
    announce(count.textContent + (way === 'up' ? ' lead to ' : ' depend on ') + data.name(p.node));
  };
  const ghosts = button('Hidden', 'nodes in neither version (h)', () => app.change({ghosts: !app.state.ghosts}));
  const labels = button('Types', 'types on the edges (x)', () => app.change({labels: !app.state.labels}));
  const overlay = data.overlay ?
      button('Overlay', 'colour nodes by ' + data.overlay.title, () => app.change({overlay: !app.state.overlay})) :
      null;
  add(parent, ...buttons, sideBySide, other, search, button('‹', 'previous hit (Shift+Enter)', () => next(-1)),
      button('›', 'next hit (Enter)', () => next(1)), count, make('span', undefined, 'space'));
  if (overlay) add(parent, overlay);
  if (data.versions > 2) add(parent, ghosts);
  add(parent, labels);
  add(parent, button('−', 'zoom out (-)', () => stage.zoom(.8)), button('+', 'zoom in (+)', () => stage.zoom(1.25)),
      button('width', 'fit the width (1)', stage.fitWidth), button('all', 'fit everything (0)', stage.fit),
      button('SVG', 'save the view as SVG', () => exporting.saveSvg()),
      button('PNG', 'save the view as PNG', () => exporting.savePng()),
      button('link', 'copy a link to this view', copyLink), button('◐', 'light or dark (d)', toggleTheme),
      button('?', 'all keys (?)', () => keys.help()));
  app.listen(() => {
    for (const b of buttons) b.setAttribute('aria-pressed', String(app.state.view === b.dataset.view));
    sideBySide.setAttribute('aria-pressed', String(app.state.sideBySide));
    sideBySide.hidden = data.versions < 2;
    other.hidden = data.versions < 2;
    other.value = app.state.base;
    ghosts.setAttribute('aria-pressed', String(app.state.ghosts));
    labels.setAttribute('aria-pressed', String(app.state.labels));
    if (overlay) overlay.setAttribute('aria-pressed', String(app.state.overlay));
  });
  return {
    focusSearch: () => {
      tabs.open('graph');
      search.focus();
      search.select();
    },
    next,
    clear,
    trace
  };
})();

function copyLink() {
  const address = location.href.split('#')[0] + share.text();
  location.hash = share.text();
  const confirmCopy = () => announce('the address of the page now leads to this view');
  if (navigator.clipboard)
    navigator.clipboard.writeText(address).then(confirmCopy, confirmCopy);
  else
    confirmCopy();
}

function toggleTheme() {
  const root = document.documentElement, dark = getComputedStyle(root).colorScheme === 'dark';
  root.dataset.theme = dark ? 'light' : 'dark';
  readInk();
  app.change();
}

/// "rule `rms_quant` matched 1 of 2 nodes, then stopped at mm: …"
function missSentence(miss) {
  const p = make('p', undefined, 'miss');
  add(p, make('b', miss.rule), ' matched ' + miss.matched + ' of ' + counted(miss.size, 'node'));
  if (miss.at >= 0) add(p, ', then stopped at ', nodeLink(miss.at));
  add(p, ': ' + miss.message + ' (' + miss.code + ').');
  if (miss.help) add(p, ' ', make('span', 'Help: ' + miss.help + '.', 'soft'));
  return p;
}

// ---- the caption: how much of the graph is shown
function caption() {
  const {shown, all} = stage.places().shown(n => stage.picture.visible(stateOf(n)), n => stateOf(n) !== 'off'),
                folded = app.state.folded && data.raw.whole.unfolded;
  let words = 'showing ' + digits(shown) + ' of ' + counted(all, 'node');
  if (data.versions > 1) words += ' of ' + shownName();
  if (folded)
    words += '; equal ' + data.folding + ' drawn once: × is their number, All ' + (data.classes ? 'pieces' : 'groups') +
        ' unfolds them';
  let closed = 0;
  stage.places().each(item => closed += item.kind === 'group' && !item.inner ? 1 : 0);
  if (closed) words += '; ' + counted(closed, 'closed box') + ' ⊞: double-click or Enter opens';
  return words;
}

// ---- the side: legend, passes, what is chosen
const side = (() => {
  const parent = $('side'), passes = make('div'), detail = make('div'), legend = make('ul', undefined, 'legend');
  detail.id = 'detail';
  passes.id = 'passes';
  if (data.versions > 1)
    for (const [state, words] of [
             ['added', 'added'], ['removed', 'removed'], ['changed', 'changed'], ['matched', 'matched, kept']])
      add(legend, add(make('li'), make('b', glyphs[state], state + '-ink'), ' ' + words));
  if (data.groups.some(g => g.kind === 'captured'))
    add(legend, add(make('li'), make('span', undefined, 'swatch captured'), ' captured'));
  if (data.groups.some(g => g.kind === 'eager'))
    add(legend, add(make('li'), make('span', undefined, 'swatch eager'), ' eager'));
  const next = make('li', '┄ back up: to the next copy of a group that is drawn once');
  add(legend, next);
  const far = make('li', '↓ without a line: from far above, or another column; drawn whole when chosen');
  add(legend, far);
  if (data.overlay) {
    const ramp = make('span', undefined, 'ramp');
    ramp.style.background = 'linear-gradient(90deg,' + [0, .25, .5, .75, 1].map(scaleColor).join(',') + ')';
    add(legend,
        add(make('li'), data.overlay.title + ': ' + String(data.overlay.least) + ' ', ramp,
            ' ' + String(data.overlay.most) + ' (' + counted(data.overlay.of.size, 'node') +
                (data.overlay.of.size === 1 ? ' has' : ' have') + ' a number, ' + digits(data.overlay.given) +
                ' were given)'));
  }
  add(parent, legend, summary(), passes, detail);

  function drawPasses() {
    if (data.versions < 2) return;
    const hidden = data.steps.filter((s, i) => i > 0 && s.hidden && i !== app.state.now).length,
          size = s => s.added + s.removed + s.changed;
    const focused = passes.contains(document.activeElement) && document.activeElement.dataset.step;
    passes.replaceChildren();
    add(passes, make('h2', 'Passes'), button('‹ earlier', 'previous pass ([)', () => goBy(-1)), ' ',
        button('later ›', 'next pass (])', () => goBy(1)));
    if (hidden)
      add(passes, ' ',
          button(
              app.state.idle ? 'hide unchanged' : 'show ' + hidden + ' unchanged', 'passes that changed nothing',
              () => app.change({idle: !app.state.idle})));
    const times = data.steps.some(s => s.ms !== undefined), widest = Math.max(1, ...data.steps.slice(1).map(size));
    const head = make('tr'), body = make('tbody');
    for (const [t, n] of [['pass'], ['nodes', 1], ['Δ', 1], ['+ − ~'], ['matches', 1], ...(times ? [['ms', 1]] : [])])
      head.append(make('th', t, n ? 'n' : ''));
    head.children[1].title =
        'with constants, which are drawn inside their readers and are not among the added and removed';
    head.children[4].title = 'rewrites by rules; Rewrites lists what built-in passes removed';
    const act = (tr, step, words, choose) => {
      tr.tabIndex = 0;
      tr.dataset.step = step;
      tr.setAttribute('aria-label', words);
      tr.setAttribute('aria-selected', String(tr.classList.contains('now')));
      tr.addEventListener('click', choose);
      tr.addEventListener('keydown', e => {
        const by = {ArrowUp: -1, ArrowDown: 1}[e.key], rows = [...body.children];
        if (e.key === 'Enter' || e.key === ' ') e.preventDefault(), e.stopPropagation(), choose();
        if (by) e.preventDefault(), e.stopPropagation(), (rows[rows.indexOf(tr) + by] || tr).focus();
      });
      body.append(tr);
    };
    if (data.versions > 2) {
      const last = data.versions - 1, sum = key => data.steps.slice(1).reduce((all, s) => all + s[key], 0),
            tr = make('tr', undefined, showsAll() ? 'now' : ''), words = make('td', 'all passes');
      add(tr, words, make('td', digits(data.steps[last].total), 'n'),
          make('td', signed(data.steps[last].total - data.steps[0].total), 'n'), make('td'),
          make(
              'td',
              data.steps.some(s => s.matches !== undefined) ?
                  digits(data.steps.reduce((all, s) => all + (s.matches || 0), 0)) :
                  '',
              'n'));
      if (times) tr.append(make('td'));
      tr.title = 'totals of all passes: +' + sum('added') + ' −' + sum('removed') + ' ~' + sum('changed');
      act(tr, 'all', 'all passes, ' + counted(data.steps[last].total, 'node'), showAll);
    }
    for (const i of visibleSteps()) {
      const s = data.steps[i], here = !showsAll() && i === app.state.now,
            tr = make('tr', undefined, (here ? 'now' : '') + (s.hidden && i ? ' idle' : '')),
            delta = i ? s.total - data.steps[i - 1].total : 0, strip = make('td', undefined, 'strip');
      for (const state of ['added', 'removed', 'changed'])
        if (i && s[state]) {
          const b = make('span', undefined, state);
          b.style.width = Math.max(2, 44 * s[state] / widest) + 'px';
          strip.append(b);
        }
      strip.title = '+' + s.added + ' −' + s.removed + ' ~' + s.changed;
      add(tr, breakable('td', s.pass || 'graph'), make('td', digits(s.total), 'n'),
          make('td', i ? signed(delta) : '', 'n'), strip,
          make('td', s.matches === undefined ? '' : digits(s.matches), 'n'));
      if (times) tr.append(make('td', s.ms === undefined ? '' : s.ms.toFixed(1), 'n'));
      tr.title = s.rules || '';
      act(tr, String(i),
          'pass ' + (s.pass || 'graph') + ', ' + counted(s.total, 'node') +
              (i ? ', ' + s.added + ' added, ' + s.removed + ' removed, ' + s.changed + ' changed' : ''),
          () => showPass(i));
    }
    const list = add(make('table'), add(make('thead'), head), body);
    list.setAttribute('role', 'grid');
    list.setAttribute('aria-label', 'passes; Enter shows the changes of one');
    add(passes, list);
    const s = data.steps[app.state.now];
    if (!showsAll() && app.state.now && s.rules) add(passes, make('p', s.rules));
    const row = focused && [...body.children].find(tr => tr.dataset.step === focused);
    if (row) row.focus();
  }

  function links(list) {
    const out = make('span');
    list.forEach((item, i) => add(out, i ? ', ' : '', item));
    return out;
  }
  const many = (list, act) => {
    const most = 24, out = links(list.slice(0, most).map(act));
    if (list.length > most) {
      const rest = link(
          ' and ' + digits(list.length - most) + ' more', 'show them',
          () => rest.replaceWith(', ', links(list.slice(most).map(act))));
      add(out, rest);
    }
    return out;
  };
  function row(list, key, value) {
    if (value === undefined || value === '') return;
    add(list, make('dt', key), add(make('dd'), value));
  }

  function aboutNode(n) {
    const list = make('dl'), around = data.groupsOf(n), v = app.state.now,
          users = data.users(n, Math.min(v, data.last[n]));
    row(list, 'op', data.op(n));
    row(list, 'attributes', data.attributes(n));
    row(list, 'results', data.values(n).map(data.typed).join('\n'));
    const reads = data.operands(n);
    if (reads.length)
      row(list, 'reads',
          links(reads.map(
              value => value >= data.inputs.length ? nodeLink(data.valueNode[value]) :
                  value < 0                        ? data.valueName(value) :
                                                     data.typed(value))));
    if (users.length) row(list, 'read by', many([...new Set(users)], nodeLink));
    const returned = (data.returned.get(n) || []).filter(o => o.first <= v && v <= o.last);
    if (returned.length) row(list, 'returned', returned.map(o => 'output ' + o.slot).join(', '));
    row(list, 'group', data.group(n));
    row(list, 'source', data.source(n));
    around.forEach(
        (g, depth) =>
            row(list,
                depth            ? 'in' :
                    data.classes ? 'piece' :
                                   'in',
                link(data.groups[g].label, 'choose it', () => stage.pick({group: g}, true))));
    const made = data.madeBy.get(n), gone = data.goneBy.get(n);
    if (made !== undefined) {
      row(list, 'made by',
          add(make('span'), rewriteLink(made),
              ' (' + data.rulePlace(data.rewrites[made]) + ') in pass ' +
                  data.steps[data.rewrites[made].version].pass));
      row(list, 'in place of', links(replaced(made).map(nodeLink)));
    }
    if (gone !== undefined) {
      row(list, 'removed by',
          add(make('span'), rewriteLink(gone),
              ' (' + data.rulePlace(data.rewrites[gone]) + ') in pass ' +
                  data.steps[data.rewrites[gone].version].pass));
      row(list, 'became', links(data.rewrites[gone].created.filter(m => m >= 0).map(nodeLink)));
    }
    row(list, 'now', {
      off: 'in neither version',
      plain: 'unchanged',
      added: '+ added',
      removed: '− removed',
      changed: '~ changed',
      matched: '◎ matched and kept'
    }[stateOf(n)]);
    if (data.overlay && data.overlay.of.has(n)) row(list, data.overlay.title, String(data.overlay.of.get(n)));
    add(detail, make('h2', data.name(n)), make('pre', data.call(n)), list);
    if (made !== undefined && data.rewrites[made].rule >= 0) add(detail, ruleText(data.rewrites[made].rule));
    if (data.last[n] === data.versions - 1) add(detail, whyNot(n));
  }
  /// Lists the rules that nearly matched a node of the last version, and why they did not.
  function whyNot(n) {
    const box = make('div'), misses = data.missesAt.get(n) || [];
    if (!data.raw.misses) return box;
    box.id = 'why-not';
    add(box, make('h2', 'Why not rewritten further?'));
    if (!misses.length)
      add(box, make('p', data.raw.whyNoMisses || 'No rule of the passes that ran nearly matches here.'));
    for (const miss of misses.slice(0, 6)) add(box, missSentence(miss));
    return box;
  }
  function aboutGroup(g) {
    const group = data.groups[g], copies = group.siblings, list = make('dl'),
          counts = data.groupStates(g, app.state.base, app.state.now);
    row(list, 'is', {
      captured: 'a captured piece',
      eager: 'an eager piece',
      layer: 'a layer',
      run: 'a run between splitting ops',
      module: 'a module'
    }[group.kind]);
    if (group.parent >= 0)
      row(list, 'in',
          link(data.groups[group.parent].label, 'choose it', () => stage.pick({group: group.parent}, true)));
    row(list, 'nodes',
        digits(group.nodes.length - counts.off - counts.removed) +
            (counts.off + counts.removed ? ' now, ' + digits(group.nodes.length) + ' in all passes' : ''));
    const marks = ['added', 'removed', 'changed', 'matched']
                      .filter(s => counts[s])
                      .map(s => glyphs[s] + counts[s] + ' ' + s)
                      .join(', ');
    if (marks) row(list, 'now', marks);
    add(detail, make('h2', group.name), list);
    const isOpen = c => app.state.expanded.has(data.groups[c].alike),
          open = app.state.folded ? copies.some(isOpen) : isOpen(g);
    add(detail, button(open ? 'Close' : 'Open', 'Enter', () => stage.toggle(g)));
    if (copies.length > 1) {
      add(detail,
          make(
              'p',
              digits(copies.length) + ' copies are equal up to names' +
                  (app.state.folded ? '; one of them is shown:' : ':')));
      const choice = make('select');
      copies.forEach(c => {
        const o = make('option', data.groups[c].name);
        o.value = c;
        choice.append(o);
      });
      choice.value = g;
      choice.setAttribute('aria-label', 'the copy to show');
      choice.addEventListener('change', () => {
        const c = +choice.value;
        if (app.state.folded) {
          app.state.copy[copies[0]] = c;
          app.change({picked: {group: c}}, true);
        } else
          stage.pick({group: c}, true);
      });
      add(detail, choice, ' ', app.state.folded ? button('show all ' + digits(copies.length), 'unfold (a)', () => {
            stage.view('all');
            stage.pick({group: g}, true);
          }) : '');
    }
    add(detail,
        longList(
            group.nodes,
            (parent, some) =>
                add(parent, table(['', 'node', 'op'], some.map(n => [glyphs[stateOf(n)], nodeLink(n), data.op(n)])))));
  }
  let last = null;
  function drawDetail() {
    detail.replaceChildren();
    const picked = app.state.picked;
    // The selection comes first, so that it is visible without scrolling.
    if (picked !== last) {
      if (picked)
        parent.prepend(detail);
      else
        parent.append(detail);
      parent.scrollTop = 0;
    }
    last = picked;
    if (!picked) {
      add(detail,
          make(
              'p',
              'Select a box to see its type, readers, source and history.' +
                  (data.versions > 1 ? ' [ and ] step through the passes, j and k through what they changed.' : '') +
                  ' ? lists the keys.',
              'soft'));
      return;
    }
    if (picked.node !== undefined)
      aboutNode(picked.node);
    else if (picked.group !== undefined)
      aboutGroup(picked.group);
    else if (picked.input !== undefined)
      add(detail, make('h2', data.inputs[picked.input].name),
          make('p', 'input of the graph: ' + data.inputs[picked.input].type),
          many([...new Set((data.readers.get(-1 - picked.input) || []).map(e => data.edges.to[e]))], nodeLink));
    else
      add(detail, make('h2', 'output ' + picked.output),
          make('p', outputLines(picked.output, app.state.now).join(': ')));
  }
  app.listen(moved => {
    if (moved) {
      const places = stage.places();
      far.hidden = !places.some(level => level.cut);
      next.hidden = !places.some(level => level.top.next > 0);
    }
    drawPasses();
    drawDetail();
    $('caption').textContent = caption();
  });
})();
