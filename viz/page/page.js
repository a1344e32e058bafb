(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const steps = data.steps, boxes = data.boxes, edges = data.edges;
const glyphs = { added: '+', removed: '−', changed: '~', matched: '◎', plain: '' };
let now = steps.length - 1, idle = false, picked = -1, found = null;
const make = (tag, text, name) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (name) e.className = name; return e; };
const add = (parent, ...children) => { for (const c of children) parent.append(c); return parent; };
const digits = n => String(n).replace(/\B(?=(\d{3})+$)/g, ' ');
const bytes = n => { const u = ['B', 'KiB', 'MiB', 'GiB', 'TiB']; let i = 0; while (n >= 1024 && i < 4) { n /= 1024; ++i; } return (i ? n.toFixed(n < 10 ? 2 : 1) : n) + ' ' + u[i]; };

// ---- state of boxes and edges at a version
function boxState(b, v) {
  if (v < b.first || v > b.last + 1) return 'off';
  if (v === b.last + 1) return 'removed';
  if (v > 0 && v === b.first) return 'added';
  if (b.changed && b.changed.includes(v)) return 'changed';
  if (b.matched && b.matched.includes(v)) return 'matched';
  return 'plain';
}
function edgeState(e, v) {
  const is = e.in.includes(v), was = v === 0 || e.in.includes(v - 1);
  return is ? (was ? 'plain' : 'added') : (v > 0 && was ? 'removed' : 'off');
}

// ---- picture
const picture = document.getElementById('picture');
const svg = picture.querySelector('svg');
const groups = boxes.map((_, i) => svg && svg.getElementById('b' + i));
const lines = edges.map((_, i) => svg && svg.getElementById('e' + i));
let view = null, home = null;
function setView(x, y, w, h) { view = [x, y, w, h]; svg.setAttribute('viewBox', view.join(' ')); }
function zoomAt(px, py, factor) {
  const r = svg.getBoundingClientRect(), scale = Math.max(view[2] / r.width, view[3] / r.height);
  const cx = view[0] + view[2] / 2 + (px - r.left - r.width / 2) * scale, cy = view[1] + view[3] / 2 + (py - r.top - r.height / 2) * scale;
  const w = Math.min(home[2] * 4, Math.max(home[2] / 400, view[2] * factor)), f = w / view[2];
  setView(cx + (view[0] - cx) * f, cy + (view[1] - cy) * f, w, view[3] * f);
}
function fitWidth() {
  const r = svg.getBoundingClientRect(), ratio = r.height / Math.max(1, r.width);
  const w = Math.max(home[2], r.width * .75);
  setView(home[0] - (w - home[2]) / 2, home[1], w, w * ratio);
}
function show(i) {
  if (!svg || !groups[i]) return;
  const r = svg.getBoundingClientRect(), g = groups[i].getBoundingClientRect(), scale = Math.max(view[2] / r.width, view[3] / r.height);
  setView(view[0] + (g.left + g.width / 2 - r.left - r.width / 2) * scale, view[1] + (g.top + g.height / 2 - r.top - r.height / 2) * scale, view[2], view[3]);
}
if (svg) {
  svg.setAttribute('preserveAspectRatio', 'xMidYMid meet');
  home = svg.getAttribute('viewBox').split(' ').map(Number);
  svg.setAttribute('role', 'img'); svg.setAttribute('aria-label', data.title + ': ' + data.caption + '. The table below has the same boxes.');
  groups.forEach((g, i) => {
    if (!g) return;
    g.setAttribute('tabindex', '0');
    const box = g.getBBox(), t = document.createElementNS('http://www.w3.org/2000/svg', 'text');
    t.setAttribute('class', 'glyph'); t.setAttribute('x', box.x - 11); t.setAttribute('y', box.y + 11); g.append(t);
    g.addEventListener('click', () => pick(i)); g.addEventListener('keydown', e => { if (e.key === 'Enter') pick(i); });
  });
  const bar = make('div', undefined, 'zoom');
  const button = (text, title, act) => { const b = make('button', text); b.title = title; b.addEventListener('click', act); return b; };
  const middle = f => { const r = svg.getBoundingClientRect(); zoomAt(r.left + r.width / 2, r.top + r.height / 2, f); };
  add(bar, button('+', 'zoom in', () => middle(.8)), button('−', 'zoom out', () => middle(1.25)), button('width', 'fit the width', fitWidth), button('all', 'fit everything', () => setView(...home)));
  picture.append(bar);
  picture.addEventListener('wheel', e => { e.preventDefault(); zoomAt(e.clientX, e.clientY, Math.exp(e.deltaY * .0015)); }, { passive: false });
  let from = null;
  picture.addEventListener('pointerdown', e => { if (e.target.closest('button')) return; from = [e.clientX, e.clientY, view[0], view[1]]; });
  window.addEventListener('pointermove', e => {
    if (!from) return;
    const r = svg.getBoundingClientRect(), scale = Math.max(view[2] / r.width, view[3] / r.height);
    if (Math.abs(e.clientX - from[0]) + Math.abs(e.clientY - from[1]) > 4) picture.classList.add('drag');
    setView(from[2] - (e.clientX - from[0]) * scale, from[3] - (e.clientY - from[1]) * scale, view[2], view[3]);
  });
  window.addEventListener('pointerup', () => { from = null; picture.classList.remove('drag'); });
  if (!document.getElementById('graph').hidden) fitWidth();
}

// ---- search: op:mm dtype:bf16 rule:add_rms users>3 and plain words
function test(query) {
  const tests = query.trim().split(/\s+/).filter(Boolean).map(word => {
    let m = /^(users|copies)([<>=]+)(\d+)$/.exec(word);
    if (m) return b => { const x = b[m[1]] || 0, n = +m[3]; return m[2] === '>' ? x > n : m[2] === '<' ? x < n : m[2] === '>=' ? x >= n : m[2] === '<=' ? x <= n : x === n; };
    m = /^(op|dtype|type|rule|group|source|name|state|piece):(.*)$/i.exec(word);
    const has = (text, part) => String(text || '').toLowerCase().includes(part.toLowerCase());
    if (!m) return b => has(b.text, word) || has(b.made, word);
    const key = m[1].toLowerCase(), want = m[2];
    if (key === 'op') return b => b.op === want || (want.endsWith('*') && String(b.op).startsWith(want.slice(0, -1)));
    if (key === 'dtype') return b => String(b.type || '').split(', ').some(t => t.startsWith(want));
    if (key === 'rule') return b => has(b.made, want) || has(b.gone, want);
    if (key === 'state') return b => boxState(b, now) === want;
    return b => has(b[key], want);
  });
  return tests.length ? b => tests.every(t => t(b)) : null;
}

// ---- side panel
document.querySelector('h1').textContent = data.title;
document.getElementById('caption').textContent = data.caption;
document.title = data.title;
const side = document.getElementById('side');
const legend = make('ul', undefined, 'legend');
for (const [state, text] of [['added', 'added'], ['removed', 'removed'], ['changed', 'changed'], ['matched', 'matched, kept']])
  add(legend, add(make('li'), make('b', glyphs[state], state + '-ink'), ' ' + text));
add(legend, add(make('li'), make('span', undefined, 'swatch captured'), ' captured'), add(make('li'), make('span', undefined, 'swatch eager'), ' eager'), make('li', '┄ next repetition'));
const passes = make('div'), detail = make('div'), plan = make('div');
add(side, legend, make('h2', 'Passes'), passes, detail, plan);
function visible() { return steps.map((s, i) => i).filter(i => idle || i === 0 || !steps[i].hidden || i === now); }
function go(by) { const list = visible(), at = list.indexOf(now); const next = list[Math.min(list.length - 1, Math.max(0, at + by))]; if (next !== undefined) { now = next; update(); } }
function drawPasses() {
  passes.replaceChildren();
  const before = make('button', '[ earlier'), after = make('button', 'later ]');
  before.addEventListener('click', () => go(-1)); after.addEventListener('click', () => go(1));
  add(passes, before, ' ', after);
  const hidden = steps.filter((s, i) => i > 0 && s.hidden).length;
  if (hidden) { const b = make('button', idle ? 'hide unchanged' : 'show ' + hidden + ' unchanged'); b.addEventListener('click', () => { idle = !idle; update(); }); add(passes, ' ', b); }
  const table = make('table'), head = make('tr');
  for (const [t, n] of [['pass'], ['nodes', 1], ['Δ', 1], ['matches', 1], ['ms', 1]]) head.append(make('th', t, n ? 'n' : ''));
  const body = make('tbody');
  for (const i of visible()) {
    const s = steps[i], tr = make('tr', undefined, (i === now ? 'now' : '') + (s.hidden && i ? ' idle' : ''));
    const delta = i ? s.nodes - steps[i - 1].nodes : 0;
    add(tr, make('td', s.pass || 'graph'), make('td', digits(s.nodes), 'n'), make('td', i ? (delta > 0 ? '+' : delta < 0 ? '−' : '') + digits(Math.abs(delta)) : '', 'n'), make('td', s.matches === undefined ? '' : digits(s.matches), 'n'), make('td', s.ms === undefined ? '' : s.ms.toFixed(1), 'n'));
    tr.tabIndex = 0; tr.title = '+' + s.added + ' −' + s.removed + ' ~' + s.changed + (s.rules ? '\n' + s.rules : '');
    const choose = () => { now = i; update(); };
    tr.addEventListener('click', choose); tr.addEventListener('keydown', e => { if (e.key === 'Enter') choose(); });
    body.append(tr);
  }
  add(passes, add(table, add(make('thead'), head), body));
  const s = steps[now];
  if (now && s.rules) add(passes, make('p', s.rules));
}
function drawDetail() {
  detail.replaceChildren();
  if (picked < 0) { add(detail, make('p', 'Click a box for its type, users, source and history. [ and ] step through the passes.')); return; }
  const b = boxes[picked], list = make('dl');
  const row = (k, v) => { if (v !== undefined && v !== '') add(list, make('dt', k), make('dd', String(v))); };
  row('op', b.op); row('type', b.type); row('users', b.users); row('group', b.group); row('source', b.source); row('piece', b.piece); row('stands for', b.copies ? digits(b.copies) + ' nodes' : ''); row('made by', b.made); row('removed by', b.gone); row('now', boxState(b, now));
  add(detail, make('h2', b.name || b.op), make('pre', b.text), list);
}
function drawPlan() {
  if (data.classes) {
    add(plan, make('h2', 'Pieces'));
    const table = make('table'), head = make('tr'), body = make('tbody');
    for (const [t, n] of [['class'], ['first'], ['pieces', 1], ['nodes', 1], ['runs']]) head.append(make('th', t, n ? 'n' : ''));
    for (const c of data.classes) add(body, add(make('tr'), make('td', c.name), make('td', c.first), make('td', digits(c.count), 'n'), make('td', digits(c.nodes), 'n'), make('td', c.captured ? 'captured' : 'eager')));
    add(plan, add(table, add(make('thead'), head), body));
  }
  if (data.plan) {
    const p = data.plan, list = make('dl');
    const row = (k, v) => add(list, make('dt', k), make('dd', v));
    row('mode', p.mode); if (p.tokens) row('tokens', p.tokens);
    row('ranges', p.ranges.map(r => r[0] + '–' + r[1]).join(', ') || 'static'); row('sizes', p.sizes.length ? p.sizes.length + ': ' + p.sizes.join(', ') : 'none');
    row('arena', bytes(p.arena) + ' (at least ' + bytes(p.live) + ' alive at once)'); row('weights', bytes(p.weights));
    add(plan, make('h2', 'Plan'), list);
  }
}

// ---- table
const section = document.getElementById('table'), search = make('input'), count = make('span');
search.type = 'search'; search.size = 44; search.placeholder = 'op:mm dtype:bf16 rule:add_rms users>3'; search.setAttribute('aria-label', 'search boxes');
const body = make('tbody'), rows = [];
{
  const table = make('table'), head = make('tr');
  for (const [t, n] of [[''], ['name'], ['op'], ['type'], ['users', 1], ['stands for', 1], ['piece'], ['group'], ['source'], ['made by']]) head.append(make('th', t, n ? 'n' : ''));
  boxes.forEach((b, i) => {
    const tr = make('tr'); tr.tabIndex = 0;
    add(tr, make('td'), make('td', b.name || ''), make('td', b.op || ''), make('td', b.type || ''), make('td', b.users === undefined ? '' : b.users, 'n'), make('td', b.copies ? digits(b.copies) : '', 'n'), make('td', b.piece || ''), make('td', b.group || ''), make('td', b.source || ''), make('td', b.made || ''));
    const choose = () => { pick(i); show(i); };
    tr.addEventListener('click', choose); tr.addEventListener('keydown', e => { if (e.key === 'Enter') choose(); });
    rows.push(tr); body.append(tr);
  });
  add(section, make('h2', 'Boxes'), add(make('p'), search, ' ', count), add(make('div', undefined, 'scroll'), add(table, add(make('thead'), head), body)));
}
search.addEventListener('input', () => { found = test(search.value); update(); });
function pick(i) { picked = picked === i ? -1 : i; update(); }

function update() {
  let hits = 0;
  boxes.forEach((b, i) => {
    const state = boxState(b, now), hit = !found || found(b), g = groups[i];
    if (hit) ++hits;
    rows[i].hidden = state === 'off' || !hit; rows[i].classList.toggle('now', i === picked);
    rows[i].firstChild.textContent = glyphs[state] || ''; rows[i].firstChild.className = state + '-ink';
    if (!g) return;
    for (const s of ['added', 'removed', 'changed', 'matched']) g.classList.toggle('st-' + s, state === s);
    g.classList.toggle('off', state === 'off'); g.classList.toggle('picked', i === picked); g.classList.toggle('found', !!found && hit && state !== 'off'); g.classList.toggle('dim', !!found && !hit);
    g.querySelector('.glyph').textContent = glyphs[state] || '';
  });
  edges.forEach((e, i) => {
    const g = lines[i]; if (!g) return;
    const state = edgeState(e, now);
    for (const s of ['added', 'removed']) g.classList.toggle('st-' + s, state === s);
    g.classList.toggle('off', state === 'off');
  });
  count.textContent = found ? hits + ' of ' + boxes.length + ' boxes match' : boxes.length + ' boxes';
  drawPasses(); drawDetail();
}
document.addEventListener('keydown', e => {
  if (e.target === search) return;
  if (e.key === '[') go(-1); else if (e.key === ']') go(1); else if (e.key === 'Escape') { picked = -1; update(); } else if (e.key === '/') { e.preventDefault(); search.focus(); }
});
drawPlan(); update();
tabs.onOpen(id => { if (id === 'graph' && svg && !view) fitWidth(); });
tabs.start();
})();
