// What all pages share: asking the server, going from page to page, what is pushed, times, and long lists.
import {html, useEffect, useLayoutEffect, useRef, useState} from './vendor/preact-htm.js';

const refused = (status, {message, hint} = {}) => Object.assign(new Error(message || `the server answered ${status}`), {status, hint});

async function asked(path, options) {
  let answer;
  try {
    answer = await fetch(`/api/v1${path}`, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw refused(0, {message: 'This page’s server doesn’t answer', hint: 'Is kubectl reconcile still running?'});
  }
  const body = await answer.json().catch(error => {
    if (answer.ok || error.name === 'AbortError') throw error;
    return {};
  });
  if (!answer.ok) {
    if (body.error?.enter) location = `${body.error.enter}?next=${esc(location.pathname + location.search)}`;
    throw refused(answer.status, body.error);
  }
  return body;
}

export const esc = encodeURIComponent;
export const get = (path, signal) => asked(path, {signal});
export const post = (path, body) =>
  asked(path, {method: 'POST', body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}});

// What is at a path, asked again when `version` changes, after a pause; nothing where there is no path.
export function useData(path, version = 0, pauseMs = 300) {
  const [state, set] = useState({busy: true});
  const ask = useRef();
  useEffect(() => {
    const stop = new AbortController();
    let busy = false, wanted = false;
    ask.current = () => {};
    if (!path) return;
    ask.current = async () => {
      wanted = busy;
      if (busy || stop.signal.aborted) return;
      busy = true;
      set(before => ({...(before.path === path && before), path, busy}));
      const found = await get(path, stop.signal).then(data => ({data}), error => ({error}));
      if (stop.signal.aborted) return;
      set(before => ({...before, error: null, ...found, busy: false}));
      setTimeout(() => { busy = false; if (wanted) ask.current(); }, pauseMs);
    };
    return () => stop.abort();
  }, [path]);
  useEffect(() => { ask.current(); }, [path, version]);
  return {...state, again: () => ask.current()};
}

export const syncPath = ({namespace, name}) => `${esc(namespace)}/${esc(name)}`;
export const objectPath = ({group, kind, namespace, name}) =>
  `/objects/${esc(group ? `${kind}.${group}` : kind)}/${esc(namespace || '-')}/${esc(name)}`;

// Calls `tell` with the events of `target` as long as whoever asks is drawn.
function useEventsOf(target, kind, tell) {
  const latest = useRef();
  latest.current = tell;
  useEffect(() => {
    const hear = event => latest.current(event);
    target.addEventListener(kind, hear);
    return () => target.removeEventListener(kind, hear);
  }, []);
}

export function go(url, {replace = false} = {}) {
  if (!replace) history.replaceState({...history.state, top: scrollY}, '');
  history[replace ? 'replaceState' : 'pushState'](null, '', url);
  if (!replace) scrollTo(0, 0);
  dispatchEvent(new PopStateEvent('popstate'));
}

// Goes back to where somebody was on a page, once that is as long again as it was.
history.scrollRestoration = 'manual';
function goBackTo(top) {
  const until = Date.now() + 3000;
  const look = () => {
    scrollTo(0, top);
    if (scrollY < top - 1 && Date.now() < until) requestAnimationFrame(look);
  };
  look();
}
addEventListener('popstate', event => { if (event.isTrusted) goBackTo(event.state?.top || 0); });

export function useLocation() {
  const [, set] = useState(0);
  for (const kind of ['popstate', 'hashchange']) useEventsOf(window, kind, () => set(count => count + 1));
  return {path: location.pathname, query: new URLSearchParams(location.search), hash: location.hash.slice(1)};
}

export function A({href, children, ...rest}) {
  const click = event => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(href);
  };
  return html`<a href=${href} onClick=${click} ...${rest}>${children}</a>`;
}

// A link to another site: only to what begins with https.
export const Out = ({href, children, ...rest}) => /^https:\/\//.test(href || '')
  ? html`<a href=${href} target="_blank" rel="noreferrer noopener" ...${rest}>${children}</a>`
  : html`<span ...${rest}>${children}</span>`;

const listeners = new Set();
let source, waitS = 1, connected = false;

const tellAll = (kind, data) => listeners.forEach(listener => listener(kind, data));

function connect() {
  source = new EventSource('/api/v1/stream');
  for (const kind of ['hello', 'again', 'syncs']) source.addEventListener(kind, event => {
    const isNews = !connected;
    connected = true;
    if (isNews) tellAll('connected');
    waitS = 1;
    tellAll(kind, JSON.parse(event.data));
  });
  source.onerror = () => {
    const was = connected;
    connected = false;
    if (was) tellAll('lost');
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(connect, waitS * 1000);
    waitS = Math.min(waitS * 2, 30);
  };
}

// Calls `listener` with what is pushed, and with `lost` and `connected`.
export function usePushes(listener) {
  const latest = useRef();
  latest.current = listener;
  useEffect(() => {
    const tell = (kind, data) => latest.current(kind, data);
    listeners.add(tell);
    if (!source) connect();
    return () => listeners.delete(tell);
  }, []);
}

export const isConnected = () => connected;

// Counts up whenever one Sync has changed, or may have.
export function useChangesOf(namespace, name) {
  const [version, set] = useState(0);
  usePushes((kind, data) => {
    const same = each => each.namespace === namespace && each.name === name;
    if (kind === 'again' || (kind === 'syncs' && (data.rows.some(same) || data.gone.some(same)))) set(number => number + 1);
  });
  return version;
}

// Counts up when an object has changed; asks nothing while hidden: browsers keep few connections.
export function useChangesAt(path) {
  const [version, set] = useState(0);
  const [hidden, hide] = useState(document.hidden), opened = useRef(0);
  useEventsOf(document, 'visibilitychange', () => hide(document.hidden));
  useEffect(() => {
    if (hidden) return;
    const source = new EventSource(`/api/v1${path}/changes`);
    source.onmessage = source.onopen = ({data}) => (data || opened.current++) && set(number => number + 1);
    return () => source.close();
  }, [path, hidden]);
  return version;
}

const SIGNS = {good: '✓', warn: '▲', bad: '✕', plain: '○'};
export const gradeOf = health =>
  ({Current: 'good', Suspended: 'plain', Failed: 'bad', NotFound: 'bad'})[health] || 'warn';

export const State = ({grade, text}) =>
  html`<span class="state ${grade}"><span class="sign" aria-hidden="true">${SIGNS[grade] || SIGNS.plain}</span>${text}</span>`;

export function ageOf(time, now = Date.now()) {
  const passed = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (!time || Number.isNaN(passed)) return '';
  for (const [unit, seconds, upTo] of [['s', 1, 120], ['m', 60, 120], ['h', 3600, 48]])
    if (passed < seconds * upTo) return `${Math.floor(passed / seconds)}${unit}`;
  return `${Math.floor(passed / 86400)}d`;
}

export function Age({time, ago = false}) {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || set(number => number + 1), 60000);
    return () => clearInterval(timer);
  }, []);
  const age = ageOf(time);
  return age && html`<time datetime=${time} title=${new Date(time).toLocaleString()}>${age}${ago ? ' ago' : ''}</time>`;
}

export const Ago = ({time}) => html`<span class="aside"><${Age} time=${time} ago/></span>`;

export const number = count => count.toLocaleString('en');
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;

const WORDS = {create: 'to create', update: 'to update', replace: 'to replace', delete: 'to delete', act: 'to act on', held: 0, blocked: 0, refused: 0, unchanged: 0};
export const summaryOf = plan => Object.keys(WORDS).filter(what => plan.summary[what]).map(what => `${plan.summary[what]} ${WORDS[what] || what}`).join(', ');

export const Trouble = ({error, again}) => html`<div class="trouble" role="alert">
  <${State} grade="bad" text=${error.message}/>
  ${error.hint && html`<p>${error.hint}</p>`}
  ${again && html`<button onClick=${again}>Try again</button>`}
</div>`;

// Draws what useData has found, and why there is no more.
export const found = ({data, error, again}, draw, text) => html`${error && html`<${Trouble} error=${error} again=${again}/>`}${data ? draw(data) : !error && html`<${Waiting} text=${text}/>`}`;

export const Card = ({items, grade, title, draw}) => items.length > 0 && html`<section class="card ${grade}"><h2>${title} <span class="aside">${items.length}</span></h2>
  <ul class="plain">${items.map(each => html`<li>${draw(each)}</li>`)}</ul></section>`;

// The first of many, and how many more there are.
export const Some = ({items, most, draw, ...rest}) => html`<ul ...${rest}>${items.slice(0, most).map(each => html`<li>${draw(each)}</li>`)}
  ${items.length > most && html`<li class="aside">and ${items.length - most} more</li>`}</ul>`;

export const Crumbs = ({namespace, name}) => html`<nav class="crumbs" aria-label="Where you are"><${A} href="/">Syncs<//> / <${A} href=${`/?namespace=${esc(namespace)}`}>${namespace}<//>
  ${name && html` / <${A} href=${`/syncs/${syncPath({namespace, name})}`}>${name}<//>`}</nav>`;

export const Waiting = ({text}) => html`<p class="waiting" role="status">${text || 'Looking …'}</p>`;

const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const narrow = matchMedia('(max-width: 45rem)');

export function useNarrow() {
  const [is, set] = useState(narrow.matches);
  useEventsOf(narrow, 'change', () => set(narrow.matches));
  return is;
}

// Draws those of `count` rows that are in sight; each is `height` rem high.
export function LongList({count, height, row, seen, ...rest}) {
  const place = useRef();
  const [range, setRange] = useState([0, 40]);
  useLayoutEffect(() => {
    let frame = 0;
    const look = () => {
      frame = 0;
      if (!place.current) return;
      const each = height * rem(), top = -place.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / each) - 10), last = Math.min(count, Math.ceil((top + innerHeight) / each) + 10);
      setRange(before => (before[0] === first && before[1] === last ? before : [first, last]));
      if (seen) seen(first, last);
    };
    const later = () => { frame = frame || requestAnimationFrame(look); };
    look();
    addEventListener('scroll', later, {passive: true});
    addEventListener('resize', later);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener('scroll', later);
      removeEventListener('resize', later);
    };
  }, [count, height, seen]);
  const rows = [];
  for (let index = range[0]; index < Math.min(range[1], count); index++)
    rows.push(row(index, {top: `${index * height}rem`, height: `${height}rem`}));
  return html`<div ref=${place} class="long" style=${{height: `${count * height}rem`}} ...${rest}>${rows}</div>`;
}

// Brings a row of a long list into sight, and calls `then` once it is drawn.
function reveal(element, index, height, then) {
  const each = height * rem(), top = element.getBoundingClientRect().top + index * each, head = 4 * rem();
  if (top < head || top + each > innerHeight) scrollBy(0, top < head ? top - head : top + each - innerHeight);
  requestAnimationFrame(() => requestAnimationFrame(then));
}

// Calls the function of a key that is pressed while nobody types.
export function useKeys(keys) {
  useEventsOf(window, 'keydown', event => {
    const act = keys[event.key];
    if (!act || event.metaKey || event.ctrlKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    act();
  });
}

// Goes from row to row of the long list in `box`, by `j` and `k`, or `move`.
export function useWalk(box, count, height) {
  const [at, setAt] = useState(-1);
  const move = by => {
    const to = Math.max(0, Math.min(count - 1, at + by));
    setAt(to);
    reveal(box.current.querySelector('.long'), to, height, () => box.current?.querySelector(`[data-index="${to}"]`)?.focus());
  };
  useKeys({j: () => move(1), k: () => move(-1)});
  return [at, setAt, move];
}
