// The state of the page, in one place: what is shown, what is chosen. Whoever changes it calls
// `change`, and all that listen draw themselves anew.
const app = (() => {
  const state = {
    now: data.versions - 1,                  // version shown
    other: 0,                                // version on the left, side by side
    beside: false,                           // side by side
    idle: false,                             // show passes that changed nothing
    folded: true,                            // each shape once
    expanded: new Set(),                     // groups whose nodes are shown
    copy: data.copies.map(list => list[0]),  // by shape: the copy that stands for all, while folded
    picked: null,                            // { node } | { group } | { input } | { output }
    rewrite: -1,                             // chosen rewrite
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
function goBy(by) {
  const list = visibleSteps(), next = list[Math.min(list.length - 1, Math.max(0, list.indexOf(app.state.now) + by))];
  if (next !== undefined) app.change({now: next});
}
