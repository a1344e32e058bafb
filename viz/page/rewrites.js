// One rewrite: the matched nodes, with the names in the rule, their replacement, and the text of the
// rule. Equal rewrites are one line with ×N.

/// Returns the nodes that a rewrite replaced, across nodes that existed only within its pass.
function replaced(r) {
  const out = new Set(), seen = new Set([r]), rest = [r];
  while (rest.length)
    for (const n of data.rewrites[rest.pop()].erased) {
      if (n >= 0)
        out.add(n);
      else if (data.madeBy.has(n) && !seen.has(data.madeBy.get(n))) {
        seen.add(data.madeBy.get(n));
        rest.push(data.madeBy.get(n));
      }
    }
  return [...out];
}

/// Returns a rule's text with line numbers.
function ruleText(i) {
  const rule = data.rules[i], out = make('div', undefined, 'rule'), lines = (rule.text || '').split('\n');
  const indent = Math.min(...lines.slice(1).filter(l => l.trim()).map(l => l.length - l.trimStart().length), 99);
  add(out,
      make(
          'div', rule.file ? rule.file + ':' + rule.line : rule.name + ': give its file with -r to see its text',
          'place'));
  if (!rule.text) return out;
  const code = make('pre');
  lines.forEach(
      (line, k) =>
          add(code, make('span', String(rule.line + k), 'line'),
              (k && indent < 99 ? line.slice(Math.max(0, indent - 2)) : line) + '\n'));
  return add(out, code);
}

/// Groups rewrites by pass, rule, and matched ops.
const alike = (() => {
  const groups = new Map();
  data.rewrites.forEach((rewrite, r) => {
    if (rewrite.rule < 0) return;
    const key =
        rewrite.version + '|' + rewrite.rule + '|' + rewrite.matched.map(n => n < 0 ? 'x' : data.op(n)).join(',');
    if (!groups.has(key)) groups.set(key, {rule: rewrite.rule, version: rewrite.version, all: []});
    groups.get(key).all.push(r);
  });
  return [...groups.values()];
})();

function chooseRewrite(r) {
  app.change({rewrite: r});
  if ($('rewrites')) tabs.open('rewrites');
}
function showRewrite(r) {
  const rewrite = data.rewrites[r], nodes = [...rewrite.created, ...rewrite.matched].filter(n => n >= 0);
  tabs.open('graph');
  app.change({base: rewrite.version - 1, now: rewrite.version, rewrite: r});
  for (const n of nodes) stage.reveal(n);
  if (nodes.length) {
    stage.pick({node: nodes[0]});
    stage.show({node: nodes[0]});
  }
}

/// Returns the attempts of the rules of a pass, collapsed. In each row, found equals guarded plus
/// taken.
function triedIn(version) {
  const rules = data.tried[version] || [];
  if (!rules.length) return '';
  const sum = rules.reduce((all, rule) => all + rule[1], 0),
        words = counted(rules.length, 'rule') + ' tried at ' + counted(sum, 'node');
  const explained =
      'attempts: nodes where a match was searched for. found: all nodes and edges of the pattern matched. guarded: ' +
      'found, but rejected by a guard, by other users of a value, or by another match. taken: rewritten. why not: ' +
      'the reason of each failed attempt, by code; `pwr explain CODE` describes a code.';
  return add(
      make('details', undefined, 'tried'), make('summary', words), make('p', explained),
      table(
          ['rule', 'attempts', 'found', 'guarded', 'taken', 'why not'],
          rules.map(
              ([rule, attempts, found, taken, codes]) =>
                  [rule, digits(attempts), digits(found), digits(found - taken), digits(taken),
                   codes.map(([code, times]) => code + ' ×' + digits(times)).join(', ')]),
          [1, 2, 3, 4]));
}

if ($('rewrites'))
  (() => {
    const parent = $('rewrites'), list = make('div', undefined, 'half'), detail = make('div', undefined, 'half');
    list.id = 'rewrite-list';
    detail.id = 'rewrite';
    add(parent, add(make('div', undefined, 'halves'), list, detail));
    const all = data.rewrites.filter(rewrite => rewrite.rule >= 0),
          swept = data.rewrites.reduce((sum, rewrite) => sum + (rewrite.rule < 0 ? rewrite.erased.length : 0), 0);
    add(list,
        make(
            'p',
            all.length ? counted(all.length, 'rewrite') + ' by rules' +
                    (swept ? ', ' + counted(swept, 'node') + ' removed by built-in passes' : '') +
                    '; rewrites that are alike are one line.' :
                         'No rule fired.'));
    let drawn = false;

    function drawList() {
      drawn = true;
      const rows = [];
      data.steps.forEach((step, v) => {
        const mine = alike.filter(group => group.version === v);
        if (mine.length || (data.tried[v] || []).length) rows.push({step, mine, v});
      });
      for (const {step, mine, v} of rows) {
        const total = mine.reduce((sum, group) => sum + group.all.length, 0);
        add(list, make('h2', 'pass ' + step.pass + ' · ' + counted(total, 'match')));
        if (mine.length)
          add(list,
              longList(
                  mine,
                  (box, some) =>
                      add(box,
                          table(
                              ['rule', '×', 'where', 'first'], some.map(group => {
                                const rewrite = data.rewrites[group.all[0]],
                                      b = link(
                                          data.ruleName(rewrite), data.rulePlace(rewrite),
                                          () => app.change({rewrite: group.all[0]}));
                                b.dataset.rewrite = group.all[0];
                                return [
                                  b, digits(group.all.length), data.rulePlace(rewrite),
                                  rewrite.matched.filter(n => n >= 0).map(data.name).slice(-1)[0] || ''
                                ];
                              }),
                              [1]))));
        add(list, triedIn(v));
      }
      const builtin = data.rewrites.filter(rewrite => rewrite.rule < 0);
      for (const rewrite of builtin)
        add(list,
            make(
                'p',
                'pass ' + data.steps[rewrite.version].pass + ' removed ' + counted(rewrite.erased.length, 'node')));
    }

    function statement(n, rewrite) {
      if (n >= 0)
        return add(make('span'), make('code', data.call(n)), ' ', link('show', 'in the graph', () => {
                     tabs.open('graph');
                     stage.pick({node: n}, true);
                   }));
      const by = data.madeBy.get(n);
      return add(
          make('span'), 'a node only within this pass',
          by === undefined || data.rewrites[by] === rewrite ? '' : add(make('span'), ', made by ', rewriteLink(by)));
    }
    function drawOne() {
      detail.replaceChildren();
      const r = app.state.rewrite;
      if (r < 0) {
        add(detail, make('p', 'Select a rule to see its matches and replacements.'));
        return;
      }
      const rewrite = data.rewrites[r], group = alike.find(one => one.all.includes(r));
      add(detail, make('h2', data.ruleName(rewrite) + ' in pass ' + data.steps[rewrite.version].pass));
      const line =
          add(make('p'),
              button('show in the graph', 'outline the matched nodes and name them (Enter)', () => showRewrite(r)));
      if (group && group.all.length > 1) {
        const at = group.all.indexOf(r),
              step = by => app.change({rewrite: group.all[(at + by + group.all.length) % group.all.length]});
        add(line, ' ', button('‹', 'the one before', () => step(-1)),
            ' ' + (at + 1) + ' of ' + digits(group.all.length) + ' alike ', button('›', 'the next', () => step(1)));
      }
      add(detail, line);
      const names = new Map();
      for (const [name, value] of rewrite.bindings)
        if (value >= data.inputs.length) {
          const n = data.valueNode[value];
          names.set(n, [...(names.get(n) || []), name]);
        }
      const rows = nodes => nodes.map(n => [(names.get(n) || []).join(', '), statement(n, rewrite)]);
      const before = table(['name', 'matched'], rows(rewrite.matched)),
            after = table(['name', 'made'], rows(rewrite.created));
      before.className = 'before';
      after.className = 'after';
      add(detail, before,
          rewrite.created.length ? after : make('p', 'No node was created: readers now read existing values.'));
      const kept = rewrite.matched.filter(n => !rewrite.erased.includes(n)).length;
      add(detail,
          make(
              'p',
              counted(rewrite.erased.length, 'node') + ' removed' + (kept ? ', ' + kept + ' kept' : '') + ', ' +
                  rewrite.created.length + ' made.'));
      add(detail,
          table(
              ['variable', 'value', 'type'],
              rewrite.bindings.map(
                  ([name, value]) =>
                      [make('code', name),
                       value === -1 ? 'a value only within this pass' : make('code', data.valueName(value)),
                       data.valueType(value)])));
      if (rewrite.rule >= 0) add(detail, ruleText(rewrite.rule));
    }
    const draw = () => {
      if ($('rewrites').hidden) return;
      if (!drawn) drawList();
      drawOne();
    };
    app.listen(draw);
    tabs.onOpen(draw);
  })();
