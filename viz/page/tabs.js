// The tabs of the page: every [role=tabpanel] with its label, one of them visible. The fragment of
// the page's address begins with the tab, so that a link can open it.
const tabs = (() => {
  const bar = document.querySelector('nav[role=tablist]');
  const panels = [...document.querySelectorAll('[role=tabpanel]')];
  const buttons = panels.map(panel => {
    const button = document.createElement('button');
    button.textContent = panel.dataset.title;
    button.id = 'tab-' + panel.id;
    button.setAttribute('role', 'tab');
    button.setAttribute('aria-controls', panel.id);
    panel.setAttribute('aria-labelledby', button.id);
    button.addEventListener('click', () => open(panel.id));
    button.addEventListener('keydown', e => {
      const by = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
      if (!by) return;
      const next = panels[(panels.indexOf(panel) + by + panels.length) % panels.length];
      open(next.id);
      document.getElementById('tab-' + next.id).focus();
    });
    bar.append(button);
    return button;
  });
  const shown = [];  // called with the id of an opened tab

  function open(id) {
    if (!panels.some(panel => panel.id === id)) id = panels[0].id;
    panels.forEach((panel, i) => {
      panel.hidden = panel.id !== id;
      buttons[i].setAttribute('aria-selected', String(panel.id === id));
      buttons[i].tabIndex = panel.id === id ? 0 : -1;
    });
    for (const act of shown) act(id);
  }
  const start = () => open(decodeURIComponent(location.hash.slice(1).split(';')[0]));
  const next = () => open(panels[(panels.findIndex(panel => !panel.hidden) + 1) % panels.length].id);
  return {open, start, next, onOpen: act => shown.push(act), current: () => panels.find(panel => !panel.hidden).id};
})();
