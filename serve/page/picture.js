// The graph and its passes: the viewer's page in a sandboxed frame. A new page loads in a hidden frame and replaces the
// old one when it is ready, with the same view.
const picture = (() => {
  const shield = make('div', {id: 'shield', hidden: true});
  const old = make('p', {id: 'old', hidden: true}, 'result of the last valid rules');
  const nothing = make(
      'div', {id: 'nothing'}, make('p', {}, 'Drop a graph here: a torch.fx dump, graph.json or .pwg.'),
      make('p', {}, 'Rules (.pwr) and share files open the same way.'));
  const box = make('section', {id: 'right', 'aria-label': 'graph and passes'}, nothing, old, shield);
  let frame = null, coming = null;
  let seen = '', touched = false;  // the view of the frame, and whether the user chose it

  /// Returns the view of the next picture: the user's current view if they chose one, else the start of the same tab.
  const place = () => touched ? seen : seen.split(';')[0];
  window.addEventListener('message', event => {
    if (frame && event.source === frame.contentWindow && typeof event.data?.seen === 'string' &&
        event.data.seen.startsWith('#')) {
      seen = event.data.seen;
      touched ||= document.activeElement === frame;
    }
  });
  // The frame would swallow a dropped file, so a shield covers it while a file is dragged in from another
  // window.
  window.addEventListener('blur', () => setTimeout(() => {
                                    shield.hidden = document.hasFocus();
                                  }));
  window.addEventListener('focus', () => {
    shield.hidden = true;
  });
  shield.addEventListener('pointermove', () => {
    shield.hidden = true;
  });

  function show(name) {
    coming?.remove();
    coming = make('iframe', {
      className: 'coming',
      title: 'graph and passes',
      sandbox: 'allow-scripts allow-downloads',
      src: '/picture/' + name + place()
    });
    const mine = coming;
    mine.addEventListener('load', () => setTimeout(() => {
                                    if (coming !== mine) return;
                                    frame?.remove();
                                    frame = mine;
                                    coming = null;
                                    touched = false;
                                    frame.className = '';
                                    nothing.hidden = true;
                                    picture.fresh();
                                  }, 60));
    box.append(mine);
  }
  return {
    box,
    show,
    fresh() {
      box.classList.remove('old');
      old.hidden = true;
    },
    stale() {
      if (!frame) return;
      box.classList.add('old');
      old.hidden = false;
    },
    clear() {
      frame?.remove();
      coming?.remove();
      frame = coming = null;
      seen = '';
      nothing.hidden = false;
      picture.fresh();
    },
    shield(on) { shield.hidden = !on; }
  };
})();
