// Keyboard shortcuts for everything; ? lists them.
const keys = (() => {
  const list = [
    ['[ ]', 'previous pass, next pass; the picture moves to its changes', {'[': () => goBy(-1), ']': () => goBy(1)}],
    ['i', 'all passes at once: the input and the last version', {i: showAll}],
    ['j k', 'next change, previous change', {j: () => stage.goToChange(1), k: () => stage.goToChange(-1)}],
    ['h', 'show or hide nodes that are in neither version', {h: () => app.change({ghosts: !app.state.ghosts})}],
    ['x', 'show types on the edges', {x: () => app.change({labels: !app.state.labels})}],
    [
      '< >', 'select all that the chosen node depends on, all that depends on it',
      {'<': () => bar.trace('up'), '>': () => bar.trace('down')}
    ],
    ['/', 'search; Enter goes to the next hit, Escape closes it', {'/': bar.focusSearch}],
    ['n N', 'next hit, previous hit', {n: () => bar.next(1), N: () => bar.next(-1)}],
    [
      'arrows', 'move from box to box', {
        ArrowUp: () => stage.walk('up'),
        ArrowDown: () => stage.walk('down'),
        ArrowLeft: () => stage.walk('left'),
        ArrowRight: () => stage.walk('right')
      }
    ],
    ['Enter', 'open or close the chosen group', {Enter: stage.enter}],
    [
      'Escape', 'clear the selection and the search', {
        Escape: () => {
          bar.clear();
          app.change({picked: null, rewrite: -1});
        }
      }
    ],
    ['+ −', 'zoom', {'+': () => stage.zoom(1.25), '=': () => stage.zoom(1.25), '-': () => stage.zoom(.8)}],
    ['0 1', 'fit everything, fit the width', {0: stage.fit, 1: stage.fitWidth}],
    [
      'o g a', 'overview, graph, all copies', {
        o: () => stage.view('overview'),
        g: () => stage.view('graph'),
        a: () => {
          if (data.raw.whole.unfolded) stage.view('all');
        }
      }
    ],
    ['e', 'open all groups', {e: stage.openAll}],
    [
      's', 'the two versions side by side', {
        s: () => {
          if (data.versions > 1) app.change({sideBySide: !app.state.sideBySide});
        }
      }
    ],
    [
      'r', 'go to the rewrite that created the chosen node', {
        r: () => {
          const p = app.state.picked;
          if (p && p.node !== undefined && data.madeBy.has(p.node)) chooseRewrite(data.madeBy.get(p.node));
        }
      }
    ],
    ['t', 'next tab', {t: () => tabs.next()}],
    ['d', 'light or dark', {d: toggleTheme}],
    ['?', 'this list', {'?': () => help()}],
  ];
  const act = new Map(list.flatMap(([, , acts]) => Object.entries(acts)));
  const onlyOnGraph = new Set(['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Enter', '+', '=', '-', '0', '1']);
  const dialog = make('dialog');
  dialog.id = 'help';
  add(dialog, make('h2', 'Keys'), table(['key', 'does'], list.map(([key, words]) => [make('kbd', key), words])),
      make(
          'p',
          'Click to select, double-click to open or close a group, zoom with the wheel or two fingers, drag to move.'),
      button('close', 'Escape', () => dialog.close()));
  document.body.append(dialog);
  function help() {
    if (dialog.open)
      dialog.close();
    else
      dialog.showModal();
  }
  document.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || dialog.open || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    if (!act.has(e.key)) return;
    if (onlyOnGraph.has(e.key) &&
        (tabs.current() !== 'graph' || (e.target !== document.body && e.target.tagName !== 'CANVAS')))
      return;
    e.preventDefault();
    act.get(e.key)();
  });
  return {help};
})();
