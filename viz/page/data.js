// The data of the page: its columns as typed arrays, and queries for nodes, values, groups and edges.
// Nodes are numbered over all versions; a value is an input or a result.
const data = (() => {
  const raw = JSON.parse($('data').textContent);
  const steps = raw.steps, versions = steps.length;
  for (const step of steps) step.total = step.nodes + (step.constants || 0);

  // Texts: a template, then a number for each of its places.
  const places = raw.templates.map(t => t.split('\x01').length - 1);
  const textAt = [];
  for (let i = 0; i < raw.texts.length; i += 1 + places[raw.texts[i]]) textAt.push(i);
  const known = new Array(textAt.length);
  const text = id => {
    if (known[id] !== undefined) return known[id];
    let at = textAt[id];
    const template = raw.templates[raw.texts[at]];
    return known[id] = template.replace(/\x01/g, () => raw.texts[++at]);
  };

  const count = raw.op.length;
  const inputs = [];
  for (let i = 0; i < raw.inputs.length; i += 3)
    inputs.push({name: text(raw.inputs[i]), type: text(raw.inputs[i + 1]), kind: raw.inputs[i + 2]});
  const valueStart = new Int32Array(count + 1), operandStart = new Int32Array(count + 1);
  valueStart[0] = inputs.length;
  for (let n = 0; n < count; ++n) {
    valueStart[n + 1] = valueStart[n] + raw.results[n];
    operandStart[n + 1] = operandStart[n] + raw.operands[n];
  }
  const valueNode = new Int32Array(valueStart[count]).fill(-1);
  for (let n = 0; n < count; ++n) valueNode.fill(n, valueStart[n], valueStart[n + 1]);
  const first = new Int32Array(count), last = new Int32Array(count).fill(versions - 1);
  for (let i = 0; i < raw.alive.length; i += 3)
    first[raw.alive[i]] = raw.alive[i + 1], last[raw.alive[i]] = raw.alive[i + 2];
  const changed = new Map(), moved = new Map(), before = new Map();  // before: op and attributes that a version changed
  const list = (map, key) => map.get(key) || (map.set(key, []), map.get(key));
  for (let i = 0; i < raw.changed.length; i += 4) {
    const [n, version, op, attributes] = raw.changed.slice(i, i + 4);
    list(changed, n).push(version);
    list(before, n).push({version, op, attributes});
  }
  for (let i = 0; i < raw.moved.length; i += 5)
    list(moved, raw.moved[i])
        .push({slot: raw.moved[i + 1], value: raw.moved[i + 2], first: raw.moved[i + 3], last: raw.moved[i + 4]});
  const opKind = new Map();
  for (let i = 0; i < raw.opKinds.length; i += 2) opKind.set(raw.opKinds[i], raw.opKinds[i + 1]);

  /// Returns every operand of a node with the versions that read it.
  function links(n) {
    const out = [], other = moved.get(n);
    for (let i = operandStart[n], slot = 0; i < operandStart[n + 1]; ++i, ++slot) {
      const value = raw.operand[i];
      if (!other || !other.some(m => m.value === value && m.last === last[n]))
        out.push({slot, value, first: first[n], last: last[n]});
    }
    if (other) out.push(...other), out.sort((a, b) => a.slot - b.slot || a.first - b.first);
    return out;
  }
  const operands = n => Array.from(raw.operand.slice(operandStart[n], operandStart[n + 1]));
  const isDrawn = value => value >= inputs.length || (value >= 0 && inputs[value].kind === 0);

  const valueName = value => value === -1 ? 'none' :
      value < 0                           ? text(-2 - value) :
      value < inputs.length               ? inputs[value].name :
                                            text(raw.result[2 * (value - inputs.length)]);
  const valueType = value => value < 0 ? '' :
      value < inputs.length            ? inputs[value].type :
                                         text(raw.result[2 * (value - inputs.length) + 1]);
  const values = n => Array.from({length: raw.results[n]}, (_, r) => valueStart[n] + r);
  const typed = value => valueName(value) + ': ' + valueType(value);
  const op = n => text(raw.op[n]);
  const name = n => raw.results[n] ? valueName(valueStart[n]) : op(n);
  const call = n => values(n).map(valueName).join(', ') + (raw.results[n] ? ' = ' : '') + op(n) + '(' +
      operands(n).map(valueName).join(', ') + ')' + text(raw.attributes[n]);
  /// Returns the lines in a box; their number matches the box's height.
  function lines(n) {
    const out = [op(n)];
    if (raw.attributes[n]) out.push(text(raw.attributes[n]));
    for (const value of values(n)) out.push(typed(value));
    for (const value of operands(n))
      if (value !== -1 && !isDrawn(value)) out.push('· ' + (value < 0 ? valueName(value) : typed(value)));
    return out;
  }

  // Groups: copies of shapes; top-level groups first, then each after its parent.
  const groups = raw.groupShape.map((shape, i) => ({
                                      shape,
                                      name: text(raw.groupName[i]),
                                      kind: ['captured', 'eager', 'layer', 'run', 'module'][raw.groupKind[i]],
                                      parent: raw.groupParent[i],
                                      depth: 0,
                                      children: [],    // in their order
                                      siblings: null,  // all equal siblings, itself included
                                      alike: i,        // its counterpart in the first group equal to its parent
                                      nodes: null
                                    }));
  // A piece that the plan does not capture is eager, even if its ops allow capture.
  if (raw.stepCaptured && raw.stepName) {
    const eager = new Set(raw.stepName.filter((_, step) => !raw.stepCaptured[step]).map(id => text(id)));
    for (const group of groups)
      if (group.kind === 'captured' && eager.has(group.name)) group.kind = 'eager';
    for (const one of raw.classes || []) one.captured = one.captured && !eager.has(one.first);
  }
  const groupAt = [], placeAt = [];  // by depth, then by node: its group, and its position in the group
  {
    let at = 0;
    const firstOf = new Map(), families = new Map();  // by shape; by parent and shape
    groups.forEach((group, g) => {
      const nodes = [], parent = groups[group.parent];
      for (let runs = raw.groupNodes[at++]; runs > 0; --runs, at += 2)
        for (let k = 0; k < raw.groupNodes[at + 1]; ++k) nodes.push(raw.groupNodes[at] + k);
      group.nodes = nodes;
      // Omits the prefix that the name of the parent group already has.
      group.label =
          parent && group.name.startsWith(parent.name + '.') ? group.name.slice(parent.name.length + 1) : group.name;
      if (!firstOf.has(group.shape)) firstOf.set(group.shape, g);
      if (parent) {
        group.depth = parent.depth + 1;
        group.alike = groups[firstOf.get(parent.shape)].children[parent.children.length] ?? g;
        parent.children.push(g);
      }
      const family = list(families, group.parent + ' ' + group.shape);
      family.push(g);
      group.siblings = family;
      if (!groupAt[group.depth]) groupAt.push(new Int32Array(count).fill(-1)), placeAt.push(new Int32Array(count));
      nodes.forEach((n, k) => {
        groupAt[group.depth][n] = g;
        placeAt[group.depth][n] = k;
      });
    });
  }
  if (!groupAt.length) groupAt.push(new Int32Array(count).fill(-1)), placeAt.push(new Int32Array(count));
  const groupOf = groupAt[0];
  /// Returns the groups that contain a node, outermost first.
  function groupsOf(n) {
    const out = [];
    for (const level of groupAt) {
      if (level[n] < 0) break;
      out.push(level[n]);
    }
    return out;
  }
  /// Returns a unique name: "piece_4/layers.3.mlp".
  const groupPath = g => (groups[g].parent < 0 ? '' : groupPath(groups[g].parent) + '/') + groups[g].name;
  /// Returns the position of a node in its group, which is equal in every copy.
  const placeIn = (g, n) => placeAt[groups[g].depth][n];

  // Edges between drawn items: from a node or (below zero) an input, to a node.
  const edges = {from: [], to: [], value: [], first: [], last: []}, edgeStart = new Int32Array(count + 1);  // by reader
  const ports = groupAt.map(() => []),
        portAt = new Int32Array(groups.length);  // ports: by depth, on top of the group it enters
  const readers = new Map();                     // by source
  for (let n = 0; n < count; ++n) {
    for (const link of links(n)) {
      if (!isDrawn(link.value)) continue;
      const from = link.value < inputs.length ? -1 - link.value : valueNode[link.value];
      list(readers, from).push(edges.to.length);
      edges.from.push(from);
      edges.to.push(n);
      edges.value.push(link.value);
      edges.first.push(link.first);
      edges.last.push(link.last);
      groupAt.forEach((level, depth) => {
        const g = level[n], enters = g >= 0 && (from < 0 || level[from] !== g);
        ports[depth].push(enters ? raw.shapes[groups[g].shape].ports[portAt[g]++] : 0);
      });
    }
    edgeStart[n + 1] = edges.to.length;
  }
  const outputs = [];
  for (let i = 0; i < raw.outputs.length; i += 4)
    outputs.push(
        {slot: raw.outputs[i], value: raw.outputs[i + 1], first: raw.outputs[i + 2], last: raw.outputs[i + 3]});
  const returned = new Map();
  for (const o of outputs)
    if (o.value >= inputs.length) list(returned, valueNode[o.value]).push(o);

  const users = (n, v) =>
      (readers.get(n) || []).filter(e => edges.first[e] <= v && v <= edges.last[e]).map(e => edges.to[e]);

  // Each rewrite with its rule.
  const rewrites = [];
  for (let i = 0; i < raw.rewrites.length;) {
    const take = () => {
      const k = raw.rewrites[i++], out = raw.rewrites.slice(i, i + k);
      i += k;
      return out;
    };
    const one = {
      rule: raw.rewrites[i++],
      version: raw.rewrites[i++],
      matched: take(),
      created: take(),
      erased: take(),
      bindings: []
    };
    for (let k = raw.rewrites[i++]; k > 0; --k, i += 2) one.bindings.push([text(raw.rewrites[i]), raw.rewrites[i + 1]]);
    rewrites.push(one);
  }
  const madeBy = new Map(), goneBy = new Map(), matchedIn = new Map();
  rewrites.forEach((rewrite, r) => {
    for (const n of rewrite.created)
      if (!madeBy.has(n)) madeBy.set(n, r);
    for (const n of rewrite.erased) goneBy.set(n, r);
    if (rewrite.rule >= 0)
      for (const n of rewrite.matched) list(matchedIn, n).push(r);
  });
  // Near misses in the last version, nearest first, and by node.
  const misses = [], missesAt = new Map();
  for (let i = 0, raws = raw.misses || []; i < raws.length;) {
    const [rule, code, message, help, matched, size, at, k] = raws.slice(i, i + 8),
                                                         nodes = raws.slice(i + 8, i + 8 + k);
    i += 8 + k;
    const miss =
        {rule: text(rule), code: text(code), message: text(message), help: text(help), matched, size, at, nodes};
    misses.push(miss);
    for (const n of new Set([at, ...nodes]))
      if (n >= 0) list(missesAt, n).push(miss);
  }
  const ruleName = rewrite => rewrite.rule < 0 ? steps[rewrite.version].pass : raw.rules[rewrite.rule].name;
  const rulePlace = rewrite => rewrite.rule < 0 ? 'a built-in pass' :
      raw.rules[rewrite.rule].file              ? raw.rules[rewrite.rule].file + ':' + raw.rules[rewrite.rule].line :
                                                  'unknown file';

  const within = (list, base, now) => list.some(v => v > Math.min(base, now) && v <= Math.max(base, now));
  /// Returns the state of a node between two versions: off (in neither), plain, added, removed, changed, or matched.
  function state(n, base, now) {
    const is = first[n] <= now && now <= last[n], was = first[n] <= base && base <= last[n];
    if (!is || !was) return is ? 'added' : was ? 'removed' : 'off';
    if (changed.has(n) && within(changed.get(n), base, now)) return 'changed';
    if (matchedIn.has(n) && within(matchedIn.get(n).map(r => rewrites[r].version), base, now)) return 'matched';
    return 'plain';
  }
  /// Returns the state of an edge, from the runs of versions that have it.
  function edgeState(life, base, now) {
    const is = life.some(l => l[0] <= now && now <= l[1]), was = life.some(l => l[0] <= base && base <= l[1]);
    return is ? (was ? 'plain' : 'added') : was ? 'removed' : 'off';
  }
  const countsOf = new Map();
  /// Counts the nodes of a group in each state between two versions.
  function groupStates(g, base, now) {
    const key = (g * versions + base) * versions + now;
    if (!countsOf.has(key)) {
      const counts = {off: 0, plain: 0, added: 0, removed: 0, changed: 0, matched: 0};
      for (const n of groups[g].nodes) ++counts[state(n, base, now)];
      countsOf.set(key, counts);
    }
    return countsOf.get(key);
  }
  // By version: added, removed, and changed nodes, and those that read another value since.
  const touched = Array.from({length: versions}, () => []), redirected = Array.from({length: versions}, () => []);
  for (let n = 0; n < count; ++n) {
    if (first[n]) touched[first[n]].push(n);
    if (last[n] + 1 < versions) touched[last[n] + 1].push(n);
  }
  for (const [n, at] of changed)
    for (const v of at) touched[v].push(n);
  for (const [n, links] of moved)
    for (const link of links)
      if (link.first > first[n]) redirected[link.first].push(n);
  /// Returns the nodes that differ between two versions, in order; if none do, those with other operands.
  function differences(base, now) {
    for (const lists of [touched, redirected]) {
      const found = new Set();
      for (let v = Math.min(base, now) + 1; v <= Math.max(base, now); ++v)
        for (const n of lists[v]) found.add(n);
      const out = [...found].filter(n => {
        const s = state(n, base, now);
        return s !== 'off' && (lists === redirected || s === 'added' || s === 'removed' || s === 'changed');
      });
      if (out.length) return out.sort((a, b) => a - b);
    }
    return [];
  }
  /// Returns the text of a node in a version.
  function statement(n, v) {
    const reads = [];
    for (const link of links(n))
      if (link.first <= v && v <= link.last) reads[link.slot] = link.value;
    // A later version may have changed the text.
    const at = (before.get(n) || []).find(b => b.version > v) || {op: raw.op[n], attributes: raw.attributes[n]};
    return values(n).map(valueName).join(', ') + (raw.results[n] ? ' = ' : '') + text(at.op) + '(' +
        reads.map(valueName).join(', ') + ')' + text(at.attributes);
  }

  const overlay = raw.overlay && raw.overlay.nodes.length ? {
    title: raw.overlay.title,
    of: new Map(raw.overlay.nodes.map((n, i) => [n, raw.overlay.numbers[i]])),
    least: raw.overlay.numbers.reduce((a, b) => Math.min(a, b)),
    most: raw.overlay.numbers.reduce((a, b) => Math.max(a, b)),
    given: raw.overlay.given
  } :
                                                            null;

  return {
    raw,
    title: raw.title,
    steps,
    versions,
    count,
    inputs,
    outputs,
    text,
    first,
    last,
    changed,
    links,
    operands,
    isDrawn,
    valueNode,
    valueName,
    valueType,
    values,
    typed,
    op,
    name,
    call,
    lines,
    kind: n => ['node', 'product', 'splitting'][opKind.get(raw.op[n])],
    attributes: n => text(raw.attributes[n]),
    group: n => text(raw.group[n]),
    source: n => text(raw.source[n]),
    types: n => values(n).map(valueType).join(', '),
    groups,
    groupOf,
    groupsOf,
    groupPath,
    groupAt,
    placeIn,
    ports,
    edgeStart,
    shapes: raw.shapes,
    edges,
    readers,
    returned,
    users,
    state,
    edgeState,
    groupStates,
    differences,
    statement,
    rules: raw.rules,
    rewrites,
    madeBy,
    goneBy,
    matchedIn,
    misses,
    tried: raw.tried || {},
    missesAt,
    ruleName,
    rulePlace,
    overlay,
    classes: raw.classes,
    plan: raw.plan,
    folding: raw.folding
  };
})();
