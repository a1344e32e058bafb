// The state of the page, in one place: what is shown, what is chosen. Whoever changes it calls
// `change`, and all that listen draw themselves anew.
const app = (() => {
  const state = {
    now: data.versions - 1,                   // version shown
    base: 0,                                  // version that it is compared with
    beside: false,                            // side by side
    ghosts: false,                            // show what is in neither of the two
    labels: false,                            // show types on edges
    idle: false,                              // show passes that changed nothing
    folded: true,                             // each shape once
    expanded: new Set(),                      // open groups: what they are alike to
    copy: data.groups.map(g => g.beside[0]),  // by first of equal ones: that which stands for all, while folded
    picked: null,                             // { node } | { group } | { input } | { output }
    rewrite: -1,                              // chosen rewrite
    query: '',
    found: null,  // what the search finds: a test of nodes
    overlay: data.overlay !== null,
  };
  const listeners = [];
  let layout = 0;  // counts changes of places
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

/// Passes that are listed.
const visibleSteps = () =>
    data.steps.map((_, i) => i).filter(i => app.state.idle || i === 0 || !data.steps[i].hidden || i === app.state.now);
/// Whether all passes are shown at once: the input beside the last version.
const showsAll = () =>
    data.versions > 1 && app.state.base === 0 && app.state.now === data.versions - 1 && data.versions !== 2;
/// One pass: what it did to the version before it.
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
/// What a node is between the two versions that are shown.
const stateOf = n => data.state(n, app.state.base, app.state.now);
/// "after clean", or "clean → attention_quant".
const versionName = v => data.steps[v].pass || 'graph';
const shownName = () => app.state.base === app.state.now ?
    versionName(app.state.now) :
    versionName(app.state.base) + ' → ' + versionName(app.state.now);
/// Groups that are drawn while equal ones are folded, down to a depth, as what they are alike to.
const groupsDownTo = depth =>
    data.groups.filter((group, g) => group.depth < depth && group.beside[0] === g).map(group => group.alike);
/// How many boxes are drawn with the groups open down to a depth.
function boxesAt(depth) {
  const first = g => data.groups[g].beside[0] === g && (data.groups[g].parent < 0 || first(data.groups[g].parent));
  let boxes = data.groups.filter((group, g) => group.depth === depth && first(g)).length;
  for (let n = 0; n < data.count; ++n) {
    const around = data.groupsOf(n);
    if (around.length <= depth && around.every(first)) ++boxes;
  }
  return boxes;
}
