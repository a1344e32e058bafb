// Exports the view: SVG from the same drawing calls as the canvas, or PNG from the canvas.

/// Implements the canvas methods that Picture uses, and writes SVG.
class SvgContext {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.out = [];
    this.transform = 'matrix(1,0,0,1,0,0)';
    this.dash = [];
    this.way = '';
    this.lineWidth = 1;
    this.textBaseline = 'alphabetic';
  }
  static escaped(text) {
    return String(text).replace(
        /[&<>"']/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;'})[c]);
  }
  static number(x) { return String(Math.round(x * 100) / 100); }
  element(tag, attributes, text) {
    const words = Object.entries(attributes).map(([k, v]) => ' ' + k + '="' + SvgContext.escaped(v) + '"').join('');
    this.out.push('<' + tag + words + (text === undefined ? '/>' : '>' + SvgContext.escaped(text) + '</' + tag + '>'));
  }
  setTransform(...m) { this.transform = 'matrix(' + m.map(x => Math.round(x * 1e5) / 1e5).join(',') + ')'; }
  setLineDash(dash) { this.dash = dash; }
  rectangle(x, y, w, h, look) {
    const n = SvgContext.number;
    this.element(
        'rect',
        {x: n(x), y: n(y), width: n(Math.max(0, w)), height: n(Math.max(0, h)), transform: this.transform, ...look});
  }
  stroked() {
    const out = {fill: 'none', stroke: this.strokeStyle, 'stroke-width': SvgContext.number(this.lineWidth)};
    if (this.dash.length) out['stroke-dasharray'] = this.dash.join(' ');
    return out;
  }
  fillRect(x, y, w, h) { this.rectangle(x, y, w, h, {fill: this.fillStyle}); }
  strokeRect(x, y, w, h) { this.rectangle(x, y, w, h, this.stroked()); }
  beginPath() { this.way = ''; }
  step(letter, ...numbers) { this.way += letter + numbers.map(SvgContext.number).join(' '); }
  moveTo(x, y) { this.step('M', x, y); }
  lineTo(x, y) { this.step('L', x, y); }
  bezierCurveTo(...points) { this.step('C', ...points); }
  closePath() { this.way += 'Z'; }
  roundRect(x, y, w, h, r) {
    this.step('M', x + r, y);
    this.way += 'h' + SvgContext.number(w - 2 * r);
    for (const [cx, cy, ex, ey, side] of [
             [r, 0, r, r, 'v' + SvgContext.number(h - 2 * r)], [0, r, -r, r, 'h' + SvgContext.number(2 * r - w)],
             [-r, 0, -r, -r, 'v' + SvgContext.number(2 * r - h)], [0, -r, r, -r, 'Z']])
      this.way += 'q' + [cx, cy, ex, ey].map(SvgContext.number).join(' ') + side;
  }
  stroke() { this.element('path', {d: this.way, transform: this.transform, ...this.stroked()}); }
  fill() { this.element('path', {d: this.way, transform: this.transform, fill: this.fillStyle}); }
  measureText(text) { return {width: String(text).length * 6.03}; }
  fillText(text, x, y) {
    const size = +/(\d+)px/.exec(this.font)[1], down = this.textBaseline === 'top' ? .86 * size : 0;
    this.element(
        'text', {
          x: SvgContext.number(x),
          y: SvgContext.number(y + down),
          fill: this.fillStyle,
          'font-size': size,
          'font-family': this.font.slice(this.font.indexOf('px') + 2).trim(),
          'font-weight': this.font.startsWith('bold') ? 'bold' : 'normal',
          'xml:space': 'preserve',
          transform: this.transform
        },
        text);
  }
  text() {
    return '<svg xmlns="http://www.w3.org/2000/svg" width="' + this.width + '" height="' + this.height +
        '" viewBox="0 0 ' + this.width + ' ' + this.height + '">\n' + this.out.join('\n') + '\n</svg>\n';
  }
}

const exporting = (() => {
  /// Draws the visible pictures, two of them side by side.
  function svg() {
    const shown = app.state.sideBySide ? stage.pictures : [stage.picture];
    const parts = shown.map(picture => {
      const to = new SvgContext(picture.width, picture.height);
      picture.drawOn(to, stage.places(), 1);
      return to.text();
    });
    if (parts.length === 1) return parts[0];
    const [w, h] = [shown[0].width, shown[0].height];
    return '<svg xmlns="http://www.w3.org/2000/svg" width="' + 2 * w + '" height="' + h + '">\n' + parts[0] +
        parts[1].replace('<svg ', '<svg x="' + w + '" ') + '</svg>\n';
  }
  /// Draws the whole graph with equal groups folded, small.
  function thumbnail(width, height) {
    const picture = stage.picture, kept = {...camera}, size = [picture.width, picture.height], state = app.state;
    const view = {expanded: state.expanded, view: state.view};
    [picture.width, picture.height] = [width, height];
    app.state.expanded = new Set();
    app.change({}, true);
    stage.fit();
    const to = new SvgContext(width, height);
    picture.drawOn(to, stage.places(), 1);
    [picture.width, picture.height] = size;
    app.change(view, true);
    Object.assign(camera, kept);
    stage.draw();
    return to.text();
  }
  function png(done) {
    const shown = app.state.sideBySide ? stage.pictures : [stage.picture], whole = make('canvas');
    stage.drawNow();
    whole.width = shown.reduce((sum, p) => sum + p.canvas.width, 0);
    whole.height = shown[0].canvas.height;
    const c = whole.getContext('2d');
    shown.forEach((p, i) => c.drawImage(p.canvas, i * shown[0].canvas.width, 0));
    whole.toBlob(done, 'image/png');
  }
  function save(blob, extension) {
    const a = make('a');
    a.href = URL.createObjectURL(blob);
    a.download = (data.title.replace(/[^\w.-]+/g, '_') || 'graph') + '.' + extension;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  }
  return {
    svg,
    thumbnail,
    png,
    saveSvg: () => save(new Blob([svg()], {type: 'image/svg+xml'}), 'svg'),
    savePng: () => png(blob => save(blob, 'png'))
  };
})();
