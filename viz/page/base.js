'use strict';
// Helpers for all other files.
const $ = id => document.getElementById(id);
const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;  // never markup: names are untrusted
  if (name) element.className = name;
  return element;
};
const add = (parent, ...children) => {
  parent.append(...children);
  return parent;
};
/// Returns an element with a name that may break after each underscore.
const breakable = (tag, name) => {
  const element = make(tag);
  name.split(/(?<=_)/).forEach((part, i) => i ? element.append(make('wbr'), part) : element.append(part));
  return element;
};
const button = (text, title, act) => {
  const element = make('button', text);
  element.title = title;
  element.addEventListener('click', act);
  return element;
};
const table = (columns, rows, numbers = []) => {
  const head = make('tr'), body = make('tbody');
  columns.forEach((column, i) => head.append(make('th', column, numbers.includes(i) ? 'n' : '')));
  for (const row of rows) {
    const tr = make('tr');
    row.forEach((cell, i) => {
      const td = make('td', undefined, numbers.includes(i) ? 'n' : '');
      td.append(cell === undefined || cell === null ? '' : cell);
      tr.append(td);
    });
    body.append(tr);
  }
  return add(make('table'), add(make('thead'), head), body);
};
const digits = n => String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f');
const counted = (n, word) => digits(n) + ' ' + word + (n === 1 ? '' : /(s|x|ch)$/.test(word) ? 'es' : 's');
const signed = n => (n > 0 ? '+' : n < 0 ? '−' : '') + digits(Math.abs(n));
const percent = x => (x >= 10 ? x.toFixed(0) : x.toFixed(1)) + '\u00a0%';
const bytes = n => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < 4) n /= 1024, ++i;
  return (i ? n.toFixed(n < 10 ? 2 : 1) : n) + ' ' + units[i];
};
const shorten = (text, width) => {
  const letters = [...text];
  if (letters.length <= width) return text;
  const head = Math.floor(width * 2 / 3);
  return letters.slice(0, head).join('') + '…' + letters.slice(letters.length - (width - head - 1)).join('');
};
const glyphs = {
  added: '+',
  removed: '−',
  changed: '~',
  matched: '◎',
  plain: '',
  off: ''
};
/// Returns a list that shows the number of hidden rows, and grows on request.
const longList = (rows, draw, batch = 300) => {
  const list = make('div'), more = make('p');
  let shown = 0;
  const grow = () => {
    draw(list, rows.slice(shown, shown + batch));
    shown = Math.min(rows.length, shown + batch);
    more.replaceChildren();
    if (shown < rows.length)
      add(more, 'showing ' + digits(shown) + ' of ' + digits(rows.length) + ' ',
          button('show ' + digits(Math.min(batch, rows.length - shown)) + ' more', '', grow));
  };
  grow();
  return add(make('div'), list, more);
};
/// Announces a change to screen readers.
const announce = words => {
  $('announcement').textContent = words;
};
