// The tabs of the page: every [role=tabpanel] with its label, one of them visible. Panels on one topic
// share a place in the upper row; the lower row then lists them. The fragment of the page's address
// begins with the tab, so that a link can open it.
const tabs = (() => {
  const topics = [
    ['Overview', ['Overview']], ['Graph', ['graph', 'table']], ['Changes', ['changes', 'rewrites', 'Rewriting', 'ops']],
    ['Why not', ['misses']], ['Run', ['Numbers', 'Kernels', 'Proofs', 'Building']],
    ['Plan', ['pieces', 'sizes', 'memory']]
  ];
  const shorter = {graph: 'Picture', changes: 'Diff', Rewriting: 'Passes', sizes: 'Sizes'};
  const bar = document.querySelector('nav[role=tablist]'), upper = document.createElement('nav');
  const found = [...document.querySelectorAll('[role=tabpanel]')];
  const topicOf = panel => {
    const at = topics.findIndex(([, names]) => names.includes(panel.id) || names.includes(panel.dataset.title));
    return at < 0 ? topics.length : at;
  };
  const rankOf = panel => {
    const [, names] = topics[topicOf(panel)] || ['', []];
    return names.findIndex(name => name === panel.id || name === panel.dataset.title);
  };
  const panels = found.map(panel => [topicOf(panel), rankOf(panel), panel])
                     .sort((a, b) => a[0] - b[0] || a[1] - b[1])
                     .map(([, , panel]) => panel);
  const used = [...new Set(panels.map(topicOf))];
  const latest = new Map();  // the panel that a topic opens
  upper.id = 'topics';
  upper.setAttribute('aria-label', 'topics');
  const heads = used.map(topic => {
    const mine = panels.filter(panel => topicOf(panel) === topic), button = document.createElement('button');
    button.textContent = topic < topics.length ? topics[topic][0] : mine[0].dataset.title;
    button.addEventListener('click', () => open(latest.get(topic) || mine[0].id));
    upper.append(button);
    return button;
  });
  bar.before(upper);
  const buttons = panels.map(panel => {
    const button = document.createElement('button');
    button.textContent = shorter[panel.id] || shorter[panel.dataset.title] || panel.dataset.title;
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
    const now = panels.find(panel => panel.id === id) || panels[0], topic = topicOf(now);
    latest.set(topic, now.id);
    panels.forEach((panel, i) => {
      panel.hidden = panel !== now;
      buttons[i].hidden = topicOf(panel) !== topic;
      buttons[i].setAttribute('aria-selected', String(panel === now));
      buttons[i].tabIndex = panel === now ? 0 : -1;
    });
    heads.forEach((head, i) => head.setAttribute('aria-pressed', String(used[i] === topic)));
    bar.classList.toggle('single', panels.filter(panel => topicOf(panel) === topic).length < 2);
    for (const act of shown) act(now.id);
  }
  const start = () => open(decodeURIComponent(location.hash.slice(1).split(';')[0]));
  const next = () => open(panels[(panels.findIndex(panel => !panel.hidden) + 1) % panels.length].id);
  return {open, start, next, onOpen: act => shown.push(act), current: () => panels.find(panel => !panel.hidden).id};
})();
