// All Syncs: searched, filtered, sorted and grouped by the server; only rows in sight are here.
import {html, useCallback, useEffect, useRef, useState} from './vendor/preact-htm.js';
import {A, Age, LongList, State, Trouble, Waiting, counted, get, go, number, syncPath, useNarrow, usePushes, useWalk} from './lib.js';

const PAGE = 100;
const COLUMNS = [['state', 'State'], ['name', 'Sync'], ['repository', 'Repository'], ['revision', 'Revision'], ['changed', 'Changed'], ['', 'Message']];
const KEPT = ['q', 'state', 'namespace', 'sort', 'group'];

const keptOf = query => new URLSearchParams(KEPT.filter(each => query.get(each)).map(each => [each, query.get(each)]));

function change(query, name, value) {
  const next = keptOf(query);
  if (value) next.set(name, value); else next.delete(name);
  go(`/${next.toString() && `?${next}`}`, {replace: true});
}

// The rows that were asked for so far, by the page that they are on.
function useRows(search) {
  const [state, set] = useState({busy: true});
  const held = useRef({}), asked = useRef(new Set()), inSight = useRef([0]), current = useRef();
  const ask = useCallback(async page => {
    if (current.current !== search) return;
    const next = new URLSearchParams(search);
    asked.current.add(page);
    next.set('offset', page * PAGE);
    next.set('limit', PAGE);
    try {
      const found = await get(`/syncs?${next}`);
      if (current.current !== search) return;
      held.current[page] = found.rows;
      set({...found, pages: {...held.current}, busy: false});
    } catch (error) {
      if (current.current === search) set(before => ({...before, error, busy: false}));
    }
  }, [search]);
  useEffect(() => {
    current.current = search;
    held.current = {};
    asked.current = new Set();
    inSight.current = [0];
    set(before => ({...before, error: null, busy: true}));
    ask(0);
  }, [ask]);
  const seen = useCallback((first, last) => {
    inSight.current = [];
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last - 1) / PAGE); page++) inSight.current.push(page);
    inSight.current.filter(page => !asked.current.has(page)).forEach(ask);
  }, [ask]);
  const again = useCallback(() => {
    asked.current = new Set();
    for (const page of Object.keys(held.current)) if (!inSight.current.includes(Number(page))) delete held.current[page];
    inSight.current.forEach(ask);
  }, [ask]);
  const put = useCallback(rows => {
    const latest = new Map(rows.map(row => [syncPath(row), row]));
    for (const [page, known] of Object.entries(held.current))
      held.current[page] = known.map(row => (row.heading === undefined && latest.get(syncPath(row))) || row);
    set(before => ({...before, pages: {...held.current}}));
  }, []);
  return {...state, seen, again, put};
}

function Row({row, style, index, narrow}) {
  if (!row) return html`<div class="row" style=${style} aria-hidden="true"><span class="blank"></span></div>`;
  if (row.heading !== undefined) return html`<div class="row heading" role="row" style=${style}><span role="cell"><h2>${row.heading}</h2></span><span class="aside">${row.count}</span></div>`;
  const health = Object.entries(row.health).map(([word, count]) => `${count} ${word}`).join(', ');
  return html`<div class="row" role="row" aria-rowindex=${index + 2} style=${style}>
    <span role="cell" class="c-state"><${State} grade=${row.grade} text=${row.state}/></span>
    <span role="cell" class="c-name"><${A} href=${`/syncs/${syncPath(row)}`} data-index=${index}><span class="aside">${row.namespace}/</span>${row.name}<//></span>
    <span role="cell" class="c-repository aside" title=${row.url}>${row.url ? `${row.url.replace(/^https?:\/\//, '')} ${row.path === '.' ? '' : row.path}` : 'applied by hand'}</span>
    <span role="cell" class="c-revision"><code>${row.revision}</code></span>
    <span role="cell" class="c-changed aside"><${Age} time=${row.changedAt} ago=${narrow}/></span>
    <span role="cell" class="c-message" title=${[row.message, health].filter(Boolean).join('\n')}>${row.message}</span>
  </div>`;
}

export function Fleet({query}) {
  const search = keptOf(query).toString();
  const {pages = {}, error, busy, length = 0, matching = 0, total = 0, states = [], namespaces = [], only, seen, again, put} = useRows(search);
  const list = useRef(), timer = useRef(0);
  const narrow = useNarrow(), height = narrow ? 5.5 : 2.75;
  usePushes((kind, data) => {
    if (kind === 'syncs') put(data.rows);
    if (kind === 'syncs' || kind === 'again')
      timer.current = timer.current || setTimeout(() => { timer.current = 0; again(); }, 300);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  useWalk(list, length, height);
  const chosen = new Set((query.get('state') || '').split(',').filter(Boolean));
  const toggle = state => {
    const next = new Set(chosen);
    if (!next.delete(state)) next.add(state);
    change(query, 'state', [...next].join(','));
  };
  const sort = query.get('sort') || 'state';
  const Head = ([name, title]) => html`<span role="columnheader" class=${`c-${name || 'message'}`}
      aria-sort=${sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : 'none'}>
    ${name ? html`<button class="sort" onClick=${() => change(query, 'sort', sort === name ? `-${name}` : name)}>${title}
      <span aria-hidden="true">${sort === name ? ' ↑' : sort === `-${name}` ? ' ↓' : ''}</span></button>` : title}</span>`;
  const row = (index, style) => html`<${Row} key=${index} index=${index} style=${style} narrow=${narrow} row=${pages[Math.floor(index / PAGE)]?.[index % PAGE]}/>`;
  return html`<section class="fleet" ref=${list} aria-busy=${busy}>
    <h1>Syncs <span class="aside">${matching === total ? '' : `${number(matching)} of `}${number(total)}</span></h1>
    ${only && html`<p class="aside">Those of namespace ${only}: you may not list the others.</p>`}
    <form class="filters" role="search" onSubmit=${event => event.preventDefault()}>
      <input type="search" aria-label="Search" placeholder="Search name, repository, message" value=${query.get('q') || ''}
        onInput=${event => change(query, 'q', event.target.value)}/>
      <select aria-label="Namespace" onChange=${event => change(query, 'namespace', event.target.value)}>
        <option value="">All namespaces</option>
        ${namespaces.map(name => html`<option value=${name} selected=${query.get('namespace') === name}>${name}</option>`)}
      </select>
      <select aria-label="Group" onChange=${event => change(query, 'group', event.target.value)}>
        ${[['', 'No groups'], ['namespace', 'By namespace'], ['repository', 'By repository']].map(([value, text]) =>
          html`<option value=${value} selected=${(query.get('group') || '') === value}>${text}</option>`)}
      </select>
    </form>
    <div class="chips" role="group" aria-label="States">
      ${states.map(({state, grade, count}) => html`<button class="chip" aria-pressed=${chosen.has(state)} onClick=${() => toggle(state)}>
        <${State} grade=${grade} text=${state}/> <b>${number(count)}</b></button>`)}
      ${chosen.size > 0 && html`<button class="quiet" onClick=${() => change(query, 'state', '')}>Show all</button>`}
    </div>
    ${error ? html`<${Trouble} error=${error} again=${again}/>` : busy && !length ? html`<${Waiting}/>` : !length ? html`<p class="nothing">
      ${total ? 'No Sync matches.' : html`There are no Syncs yet. <code>kubectl reconcile create NAME --url URL</code> makes one.`}</p>`
      : html`<div role="table" aria-rowcount=${length + 1} aria-label=${counted(matching, 'Sync')}>
        <div class="row head" role="row">${COLUMNS.map(Head)}</div>
        <${LongList} role="rowgroup" count=${length} height=${height} seen=${seen} row=${row}/>
      </div>`}
  </section>`;
}
