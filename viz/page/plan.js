// Pieces, sizes and memory of the plan, as sentences, charts and tables.

const drawSvg = (tag, attributes, ...children) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/// Returns the number of captured pieces.
function pieceSentence() {
  const steps = data.raw.stepCaptured, total = data.classes.reduce((sum, c) => sum + c.count, 0),
        able = data.classes.reduce((sum, c) => sum + (c.captured ? c.count : 0), 0);
  const captured = steps ? steps.reduce((sum, c) => sum + c, 0) : able;
  const words = steps ?
      counted(captured, 'piece') + ' of ' + digits(total) + (captured === 1 ? ' is' : ' are') + ' captured' :
      digits(able) + ' of ' + counted(total, 'piece') + ' can be captured';
  const rest = total - captured, classes = data.classes.filter(c => c.captured).length;
  if (!captured)
    return 'No piece is captured: ' + (total === 1 ? 'the only one runs' : 'all ' + digits(total) + ' run') +
        ' eagerly.';
  return words +
      (classes ? ', in ' + counted(classes, 'class') + ' that ' + (classes === 1 ? 'is' : 'are') + ' compiled once' +
               (classes === 1 ? '' : ' each') :
                 '') +
      (rest ? '; the other ' + (rest === 1 ? 'one runs' : digits(rest) + ' run') + ' eagerly.' : '.');
}
/// Returns the nodes and ops that each piece runs, by the name of the piece; `drawn` excludes constants.
function classesOfPieces() {
  const out = new Map(), raw = data.raw.classOf;
  for (let i = 0; i < raw.length; i += 2) {
    const {nodes, ops} = data.classes[raw[i + 1]];
    out.set(data.text(raw[i]), {nodes, ops, drawn: ops.reduce((sum, [, count]) => sum + count, 0)});
  }
  return out;
}
/// Returns ranges of token counts with the same padding.
const padding = (() => {
  const runs = [], raw = data.raw.padding || [];
  for (let i = 0; i < raw.length; i += 4)
    runs.push({first: raw[i], last: raw[i + 1], rows: raw[i + 2], mode: raw[i + 3]});
  return {runs, modes: ['eagerly', 'in captured pieces', 'as one captured graph']};
})();
function paddingSentence(tokens) {
  const plan = data.plan, run = padding.runs.find(r => r.first <= tokens && tokens <= r.last);
  if (!run) return counted(tokens, 'token') + ': more than the ' + digits(plan.max) + ' that the plan is made for.';
  const rows = run.rows || Math.ceil(tokens / plan.multiple) * plan.multiple, more = rows - tokens;
  return counted(tokens, 'token') +
      (more ? ' pad to ' + digits(rows) + ' rows: ' + digits(more) + ' of them padding (' + percent(100 * more / rows) +
               ')' :
              ' run as they are') +
      '; the plan runs them ' + padding.modes[run.mode] + '.';
}
/// Returns storages with their lifetimes, and the peak.
const memoryFacts = (() => {
  let facts = null;
  function read() {
    const slots = [], raw = data.raw.slots || [], plan = data.plan;
    for (let i = 0; i < raw.length; i += 7)
      slots.push({
        name: raw[i],
        first: raw[i + 1],
        last: raw[i + 1] + raw[i + 2],
        begin: raw[i + 3],
        end: raw[i + 3] + raw[i + 4],
        bytes: data.raw.slotBytes[raw[i + 5]],
        offset: data.raw.slotOffsets[raw[i + 6]]
      });
    const end = slots.reduce((m, s) => Math.max(m, s.end), 0) + 1, aligned = b => Math.ceil(b / 256) * 256;
    const live = new Float64Array(end + 1);
    for (const s of slots) {
      live[s.begin] += aligned(s.bytes);
      live[s.end + 1] -= aligned(s.bytes);
    }
    let peak = 0;
    for (let i = 1; i < end; ++i) {
      live[i] += live[i - 1];
      if (live[i] > live[peak]) peak = i;
    }
    const stepName = s =>
        data.raw.stepName && data.raw.stepName[s] !== undefined ? data.text(data.raw.stepName[s]) : 'step ' + s;
    const atPeak = slots.filter(s => s.begin <= peak && peak <= s.end).sort((a, b) => b.bytes - a.bytes);
    const where = atPeak.length ? atPeak.reduce((best, s) => s.begin > best.begin ? s : best) : null;
    const sentence = !slots.length ? 'The arena is empty.' :
                                     'The peak is ' + bytes(live[peak]) + ' live at once' +
            (where ? ', in ' + stepName(where.first) + ' when ' + data.text(where.name) + ' is computed' : '') +
            ' (node ' + digits(peak + 1) + ' of ' + digits(end) + '). The arena has ' + bytes(plan.arena) +
            (plan.workspace ? ', ' + bytes(plan.workspace) + ' of it workspace' : '') + '; weights take ' +
            bytes(plan.weights) + '.';
    return {slots, live, end, peak, atPeak, stepName, sentence};
  }
  return () => facts = facts || read();
})();

if ($('pieces'))
  tabs.onOpen(id => {
    const parent = $('pieces');
    if (id !== 'pieces' || parent.childElementCount) return;
    add(parent, make('p', pieceSentence(), 'answer'));
    if (data.plan)
      add(parent,
          make('p', 'Capture mode: ' + data.plan.mode + (data.plan.reason ? ' (' + data.plan.reason + ')' : '') + '.'));
    add(parent, make('h2', 'Classes of equal pieces'),
        table(
            ['class', 'first', 'pieces', 'nodes each', 'runs'],
            data.classes.map(
                c => [c.name, c.first, digits(c.count), digits(c.nodes), c.captured ? 'captured' : 'eager ▨']),
            [2, 3]));
    const pieces = data.groups.map((group, g) => ({group, g}))
                       .filter(({group}) => group.kind === 'captured' || group.kind === 'eager');
    const classOf = classesOfPieces(), live = n => data.last[n] === data.versions - 1;
    const drawn = pieces.reduce((sum, {group}) => sum + group.nodes.filter(live).length, 0);
    const atLoad = drawn - pieces.reduce((sum, {group}) => sum + classOf.get(group.name).drawn, 0);
    if (atLoad > 0)
      add(parent,
          make(
              'p',
              counted(atLoad, 'more node') + (atLoad === 1 ? ' computes' : ' compute') +
                  ' weights once at load. The picture shows them in the pieces.',
              'soft'));
    add(parent, make('h2', 'Pieces in execution order'),
        longList(
            pieces,
            (box, some) =>
                add(box,
                    table(
                        ['piece', 'runs', 'nodes', 'ops'], some.map(({group, g}) => {
                          const {nodes, ops} = classOf.get(group.name);
                          return [
                            link(
                                group.name, 'show in the graph',
                                () => {
                                  tabs.open('graph');
                                  stage.reveal(group.nodes[0]);
                                  stage.pick({group: g}, true);
                                }),
                            group.kind === 'eager' ? 'eager ▨' : 'captured', digits(nodes),
                            ops.map(([op, k]) => op + (k > 1 ? ' ×' + k : '')).join(', ')
                          ];
                        }),
                        [2]))));
  });

if ($('sizes'))
  (() => {
    const parent = $('sizes'), plan = data.plan, {runs, modes} = padding;
    function chart() {
      const largest = plan.sizes.length ? plan.sizes[plan.sizes.length - 1] : plan.max,
            end = Math.min(largest, plan.max), w = 900, h = 220, left = 46, bottom = 34;
      let most = 0;
      const points = [];
      for (const run of runs) {
        if (run.first > end || !run.rows) continue;
        for (const tokens of [run.first, Math.min(run.last, end)]) {
          const waste = 100 * (run.rows - tokens) / run.rows;
          most = Math.max(most, waste);
          points.push([tokens, waste]);
        }
      }
      const X = t => left + (w - left - 10) * t / end, Y = p => h - bottom - (h - bottom - 12) * p / Math.max(1, most);
      const svg = drawSvg('svg', {
        viewBox: '0 0 ' + w + ' ' + h,
        role: 'img',
        class: 'chart',
        'aria-label': 'padding waste by number of tokens; the table below has the numbers'
      });
      for (let i = 0; i <= 4; ++i) {
        const p = most * i / 4;
        svg.append(
            drawSvg('line', {x1: left, x2: w - 10, y1: Y(p), y2: Y(p), class: 'grid'}),
            drawSvg('text', {x: left - 6, y: Y(p) + 4, 'text-anchor': 'end'}, percent(p)));
      }
      for (let i = 0; i <= 8; ++i) {
        const t = Math.round(end * i / 8);
        svg.append(drawSvg('text', {x: X(t), y: h - bottom + 16, 'text-anchor': 'middle'}, digits(t)));
      }
      svg.append(drawSvg(
          'text', {x: w / 2, y: h - 4, 'text-anchor': 'middle'},
          'tokens of a step; the height is the fraction of its rows that is padding'));
      svg.append(drawSvg('polygon', {
        points: [
          left + ',' + Y(0), ...points.map(p => X(p[0]).toFixed(1) + ',' + Y(p[1]).toFixed(1)), X(end) + ',' + Y(0)
        ].join(' '),
        class: 'waste'
      }));
      return svg;
    }
    tabs.onOpen(id => {
      if (id !== 'sizes' || parent.childElementCount) return;
      if (!runs.length) {
        add(parent, make('p', 'The graph has a fixed number of tokens: nothing is padded.'));
        return;
      }
      const ask = make('input'), out = make('p', paddingSentence(300), 'answer');
      ask.type = 'number';
      ask.min = 1;
      ask.value = 300;
      ask.id = 'tokens';
      out.id = 'padded';
      out.setAttribute('role', 'status');
      ask.addEventListener('input', () => {
        out.textContent = +ask.value >= 1 ? paddingSentence(Math.floor(+ask.value)) : 'A step has at least one token.';
      });
      add(parent, add(make('p'), add(make('label', 'A step of '), ask, ' tokens:')), out);
      add(parent,
          make(
              'p',
              plan.sizes.length ?
                  counted(plan.sizes.length, 'size') + ' captured, from ' + digits(plan.sizes[0]) + ' to ' +
                      digits(plan.sizes[plan.sizes.length - 1]) + '; up to ' + digits(plan.max) + ' tokens a step.' :
                  'No size is captured.'));
      for (const note of plan.notes) add(parent, make('p', note));
      add(parent, make('h2', 'Padding waste'), chart());
      add(parent,
          longList(
              runs,
              (box, some) =>
                  add(box,
                      table(
                          ['tokens', 'rows', 'most padding', 'waste at most', 'runs'],
                          some.map(
                              r =>
                                  [r.first === r.last ? digits(r.first) : digits(r.first) + '–' + digits(r.last),
                                   r.rows                ? digits(r.rows) :
                                       plan.multiple > 1 ? 'the next multiple of ' + plan.multiple :
                                                           'as many',
                                   digits(r.rows ? r.rows - r.first : plan.multiple - 1),
                                   percent(
                                       r.rows ? 100 * (r.rows - r.first) / r.rows :
                                                100 * (plan.multiple - 1) / (r.first + plan.multiple - 1)),
                                   modes[r.mode]]),
                          [1, 2, 3]))));
    });
  })();

const openMemory = () => {
  const parent = $('memory'), plan = data.plan, {slots, live, end, peak, atPeak, stepName, sentence} = memoryFacts();

  // The visible part of the schedule: all of it, or the surroundings of the peak if it is long.
  const most = 400, words = make('span');
  let low = 0, high = end;
  if (end > most) low = Math.max(0, Math.min(end - most, peak - most / 2)), high = low + most;
  const look = (from, to, canvas) => {
    const wide = Math.min(end, Math.max(8, to - from));
    low = Math.max(0, Math.min(end - wide, from));
    high = low + wide;
    chart(canvas);
  };
  const zoomBy = (factor, at, canvas) => look(at - (at - low) * factor, at + (high - at) * factor, canvas);

  function chart(canvas) {
    words.textContent =
        'showing nodes ' + digits(Math.floor(low) + 1) + '–' + digits(Math.ceil(high)) + ' of ' + digits(end);
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight,
          c = canvas.getContext('2d'), left = 70, top = 10, wide = w - left - 10, tall = h - top - 30,
          arena = Math.max(1, plan.arena, live[peak] || 0);
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = ink.paper;
    c.fillRect(0, 0, w, h);
    const X = i => left + wide * (i - low) / (high - low), Y = b => top + tall - tall * b / arena;
    c.save();
    c.beginPath();
    c.rect(left, 0, wide, h);
    c.clip();
    for (const s of slots) {
      if (s.end + 1 < low || s.begin > high) continue;
      const x = X(s.begin), y = Y(s.offset + s.bytes), width = Math.max(1, X(s.end + 1) - x),
            height = Math.max(1, Y(s.offset) - y), hot = s.begin <= peak && peak <= s.end;
      c.fillStyle = hot ? ink.changed : ink.product;
      c.globalAlpha = hot ? .75 : 1;
      c.fillRect(x, y, width, height);
      c.globalAlpha = 1;
      if (width > 3 && height > 3) {
        c.strokeStyle = ink.soft;
        c.lineWidth = .6;
        c.strokeRect(x, y, width, height);
      }
    }
    c.strokeStyle = ink.added;
    c.lineWidth = 1.6;
    c.beginPath();
    for (let i = Math.max(0, Math.floor(low)); i < Math.min(end, Math.ceil(high)); ++i) {
      c.lineTo(X(i), Y(live[i]));
      c.lineTo(X(i + 1), Y(live[i]));
    }
    c.stroke();
    c.strokeStyle = ink.removed;
    c.setLineDash([5, 3]);
    c.beginPath();
    c.moveTo(X(peak + .5), top);
    c.lineTo(X(peak + .5), top + tall);
    c.stroke();
    c.setLineDash([]);
    c.restore();
    c.fillStyle = ink.ink;
    c.font = '12px system-ui, sans-serif';
    c.textBaseline = 'middle';
    c.textAlign = 'right';
    for (let i = 0; i <= 4; ++i) c.fillText(bytes(Math.round(arena * i / 4)), left - 6, Y(arena * i / 4));
    c.textAlign = 'center';
    if (low <= peak && peak <= high)
      c.fillText('peak', Math.min(w - 20, Math.max(left + 20, X(peak + .5))), top + tall + 10);
    c.textAlign = 'left';
    c.fillText('nodes in execution order →', left, top + tall + 22);
    canvas.onmousemove = e => {
      const r = canvas.getBoundingClientRect(), i = low + (e.clientX - r.left - left) / wide * (high - low),
            b = (top + tall - (e.clientY - r.top)) / tall * arena;
      const hit = slots.find(s => s.begin <= i && i < s.end + 1 && s.offset <= b && b < s.offset + s.bytes);
      canvas.title = hit ? data.text(hit.name) + ': ' + bytes(hit.bytes) + ' at ' + digits(hit.offset) + ', ' +
              stepName(hit.first) + '–' + stepName(hit.last) :
                           '';
    };
  }
  if (!slots.length) {
    add(parent, make('p', sentence));
    return () => {};
  }
  add(parent, make('p', sentence, 'answer'));
  add(parent,
      make(
          'p',
          'At the largest size, ' + digits(plan.max || 1) +
              ' tokens. A rectangle is a value: as wide as its life, at its place in the arena; the line is what is alive; orange is alive at the peak.'));
  const canvas = make('canvas', undefined, 'memory');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', 'lifetimes and offsets of values; the table below lists the largest at the peak');
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    const r = canvas.getBoundingClientRect();
    zoomBy(Math.exp(e.deltaY * .0015), low + (e.clientX - r.left - 70) / (r.width - 80) * (high - low), canvas);
  }, {passive: false});
  const middle = () => (low + high) / 2,
        step = by => look(low + by * (high - low) / 2, high + by * (high - low) / 2, canvas);
  add(parent,
      add(make('p'), words, ' ', button('◀', 'earlier', () => step(-1)), ' ', button('▶', 'later', () => step(1)), ' ',
          button('+', 'fewer nodes', () => zoomBy(.5, middle(), canvas)), ' ',
          button('−', 'more nodes', () => zoomBy(2, middle(), canvas)), ' ',
          button('peak', 'around the peak', () => look(peak - (high - low) / 2, peak + (high - low) / 2, canvas)), ' ',
          button('all', 'the whole schedule', () => look(0, end, canvas))));
  add(parent, canvas, make('h2', 'Live at the peak'),
      longList(
          atPeak,
          (box, some) => add(
              box,
              table(
                  ['value', 'bytes', 'offset', 'from', 'to'],
                  some.map(
                      s => [data.text(s.name), bytes(s.bytes), digits(s.offset), stepName(s.first), stepName(s.last)]),
                  [1, 2]))));
  if (plan.captures.length)
    add(parent, make('h2', 'Captured graphs'),
        longList(
            plan.captures,
            (box, some) => add(
                box,
                table(
                    ['what', 'mode', 'graphs', 'nodes', 'copied inputs', 'alive in the arena'],
                    some.map(c => [c.key, c.mode, digits(c.graphs), digits(c.nodes), bytes(c.input), bytes(c.live)]),
                    [2, 3, 4, 5]))));
  window.addEventListener('resize', () => {
    if (!parent.hidden) chart(canvas);
  });
  app.listen(() => {
    if (!parent.hidden) chart(canvas);
  });
  return () => chart(canvas);
};
let drawMemory = null;  // made when the tab is first opened
tabs.onOpen(id => {
  if (id === 'memory') (drawMemory = drawMemory || openMemory())();
});
