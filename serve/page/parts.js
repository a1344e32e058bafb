'use strict';
// Shared by the other files: elements, and the settings of the server.
const settings = JSON.parse(document.getElementById('settings').textContent);
const $ = id => document.getElementById(id);
/// Returns an element with properties and children; texts are never markup.
const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties))
    if (key in element)
      element[key] = value;
    else
      element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const randomId =
    () => [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, '0')).join('');

/// Requests to the server, see docs/serve.md. Each lane has one at a time: a newer request cancels the previous one.
const server = (() => {
  const token = new URLSearchParams(location.search).get('token');
  const lanes = {run: randomId(), file: randomId()};
  const waiting = {};
  async function get(path) { return fetch(path, {headers: {'X-Piecewise-Token': token}}); }
  /// Returns the answer, or null if a newer request replaced this one.
  async function ask(lane, question, content = '', graph = '') {
    waiting[lane]?.abort();
    const mine = waiting[lane] = new AbortController();
    const headers = {
      'X-Piecewise-Token': token,
      'X-Piecewise-Page': lanes[lane],
      'Content-Type': 'application/octet-stream'
    };
    if (graph) headers['X-Piecewise-Graph'] = graph;
    try {
      const response = await fetch(
          '/ask',
          {method: 'POST', headers, signal: mine.signal, body: new Blob([JSON.stringify(question), '\n', content])});
      if (response.status === 409) return null;
      if (response.status === 410) return {gone: true};
      if (!response.ok) return refused(await response.text());
      const answer = await response.json();
      answer.page = response.headers.get('X-Piecewise-Picture');
      return mine.signal.aborted ? null : answer;
    } catch (error) {
      if (mine.signal.aborted) return null;
      return refused('the server does not answer: check that `pwr serve` is running');
    }
  }
  const refused = message => ({
    problems: [{severity: 'error', code: '', message, help: '', where: 'run', place: '', related: []}],
    strategies: [],
    log: []
  });
  return {get, ask};
})();
