// The state of the page in one place: the view and the selection. To change it, call `change`, which
// redraws all listeners.
const app = (() => {
  const state = {
    now: data.versions - 1,                     // version shown
    base: 0,                                    // version to compare with
    sideBySide: false,                          // shows the base too
    ghosts: false,                              // show nodes in neither of the two
    labels: false,                              // show types on edges
    idle: false,                                // show passes that changed nothing
    folded: true,                               // each shape once
    expanded: new Set(),                        // open groups, by `alike`
    copy: data.groups.map(g => g.siblings[0]),  // by first of equal groups: the copy that represents all while folded
    picked: null,                               // { node } | { group } | { input } | { output }
    rewrite: -1,                                // chosen rewrite
    query: '',
    found: null,  // the predicate of the search
    overlay: data.overlay !== null,
  };
  const listeners = [];
  let layout = 0;  // counts changes of the layout
  return {
    state,
    listen: act => listeners.push(act),
    change(values = {}, places = false) {
      Object.assign(state, values);
      if (places) ++layout;
      for (const act of listeners) act(places);
    },
    edition: () => layout,
  };
})();
const mostBoxes = data.raw.most;  // more nodes than these start folded into their groups

/// Returns the listed passes.
const visibleSteps = () =>
    data.steps.map((_, i) => i).filter(i => app.state.idle || i === 0 || !data.steps[i].hidden || i === app.state.now);
/// Returns true if all passes are shown at once: the input next to the last version.
const showsAll = () =>
    data.versions > 1 && app.state.base === 0 && app.state.now === data.versions - 1 && data.versions !== 2;
/// Shows one pass: its changes to the previous version.
function showPass(v) {
  app.change({base: Math.max(0, v - 1), now: v});
  stage.follow();
}
function showAll() {
  app.change({base: 0, now: data.versions - 1});
  stage.follow();
}
function goBy(by) {
  const list = visibleSteps(), at = showsAll() ? list.length : list.indexOf(app.state.now);
  const next = list[Math.min(list.length - 1, Math.max(0, at + by))];
  if (next !== undefined) showPass(next);
}
/// Returns the state of a node between the two visible versions.
const stateOf = n => data.state(n, app.state.base, app.state.now);
/// Returns "after clean", or "clean → attention_quant".
const versionName = v => data.steps[v].pass || 'graph';
const shownName = () => app.state.base === app.state.now ?
    versionName(app.state.now) :
    versionName(app.state.base) + ' → ' + versionName(app.state.now);
/// Returns the groups drawn while equal ones are folded, down to a depth, by `alike`.
const groupsDownTo = depth =>
    data.groups.filter((group, g) => group.depth < depth && group.siblings[0] === g).map(group => group.alike);
/// Returns the number of boxes if groups are open down to a depth.
function boxesAt(depth) {
  const first = g => data.groups[g].siblings[0] === g && (data.groups[g].parent < 0 || first(data.groups[g].parent));
  let boxes = data.groups.filter((group, g) => group.depth === depth && first(g)).length;
  for (let n = 0; n < data.count; ++n) {
    const around = data.groupsOf(n);
    if (around.length <= depth && around.every(first)) ++boxes;
  }
  return boxes;
}
