// Everything works from the keyboard; ? says how.
const keys = (() => {
  const list = [
    [
      '[ ]', 'the pass before, the next pass; the picture moves to what it changed',
      {'[': () => goBy(-1), ']': () => goBy(1)}
    ],
    ['i', 'all passes at once: the input beside the last version', {i: showAll}],
    ['j k', 'the next change, the one before', {j: () => stage.goToChange(1), k: () => stage.goToChange(-1)}],
    ['h', 'show, or hide again, what is in neither version', {h: () => app.change({ghosts: !app.state.ghosts})}],
    ['x', 'types on the edges', {x: () => app.change({labels: !app.state.labels})}],
    [
      '< >', 'all that the chosen node depends on, all that depends on it',
      {'<': () => bar.trace('up'), '>': () => bar.trace('down')}
    ],
    ['/', 'search; Enter goes to the next hit, Escape ends it', {'/': bar.focusSearch}],
    ['n N', 'the next hit, the one before', {n: () => bar.next(1), N: () => bar.next(-1)}],
    [
      'arrows', 'walk from box to box', {
        ArrowUp: () => stage.walk('up'),
        ArrowDown: () => stage.walk('down'),
        ArrowLeft: () => stage.walk('left'),
        ArrowRight: () => stage.walk('right')
      }
    ],
    ['Enter', 'open or close the chosen group', {Enter: stage.enter}],
    [
      'Escape', 'choose nothing, search for nothing', {
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
          if (data.versions > 1) app.change({beside: !app.state.beside});
        }
      }
    ],
    [
      'r', 'the rewrite that made the chosen node', {
        r: () => {
          const p = app.state.picked;
          if (p && p.node !== undefined && data.madeBy.has(p.node)) chooseRewrite(data.madeBy.get(p.node));
        }
      }
    ],
    ['t', 'to the next tab', {t: () => tabs.next()}],
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
          'A click chooses, a double click opens or closes a group, the wheel or two fingers zoom, dragging moves.'),
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
