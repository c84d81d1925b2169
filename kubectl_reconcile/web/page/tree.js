// What belongs to a Sync, and whether it is as Git asks for: what is well is folded, what isn't is open; only rows in sight are drawn.
import {html, useMemo, useRef, useState} from './vendor/preact-htm.js';
import {A, Age, LongList, State, counted, gradeOf, objectPath, useKeys, useWalk} from './lib.js';

const HEIGHT = 2.25;
const isWell = node => ['good', 'plain'].includes(gradeOf(node.health));
const keyOf = node => node.uid || `${node.kind}/${node.namespace}/${node.name}`;
const groupOf = node => node.apiVersion.includes('/') ? node.apiVersion.split('/')[0] : '';
const nameOf = ({group, kind, namespace, name}) => [group, kind, namespace || '', name].join('/');

const wordOf = change => change.held ? ['held', 'warn'] : change.op === 'delete' ? ['to delete', 'bad']
  : change.grade === 'bad' ? [change.verdict, 'bad']
  : change.fields.some(({reason}) => reason === 'drift' || reason === 'both') ? ['drifted', 'warn'] : ['changed in Git', 'warn'];

// Says of a node whether it is in sync, by the plan of its Sync; of what no plan asks for, nothing.
export function judge(plan) {
  if (!plan || plan.problems.length) return () => null;
  const words = new Map();
  for (const change of plan.changes) if (change.op !== 'act') words.set(nameOf(change.object), wordOf(change));
  return (node, isMember) => words.get(nameOf({...node, group: groupOf(node)})) || (isMember ? ['in sync', 'good'] : null);
}

// Marks each node that isn't well, or has such below it; returns how many there are.
function ailing(node, found) {
  let count = isWell(node) ? 0 : 1;
  for (const child of node.children) count += ailing(child, found);
  if (count) found.set(keyOf(node), count);
  return count;
}

// The node with what fits below it, null where nothing does.
function sifted(node, fits) {
  const children = node.children.map(child => sifted(child, fits)).filter(Boolean);
  return children.length || fits(node) ? {...node, children} : null;
}

function flat(node, isOpen, level = 1, rows = []) {
  rows.push({node, level});
  if (isOpen(node, level)) for (const child of node.children) flat(child, isOpen, level + 1, rows);
  return rows;
}

export function Tree({root: whole, home, stateOf}) {
  const [turned, setTurned] = useState(new Map()), [text, setText] = useState('');
  const box = useRef(), words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const members = useMemo(() => new Set(whole.children.map(keyOf)), [whole]);
  const root = useMemo(() => {
    const said = node => [node.kind, node.namespace, node.name, node.health, node.message, stateOf(node, members.has(keyOf(node)))?.[0]].join(' ').toLowerCase();
    return words.length ? sifted(whole, node => node !== whole && words.every(word => said(node).includes(word))) || {...whole, children: []} : whole;
  }, [whole, text, stateOf]);
  const unwell = useMemo(() => { const found = new Map(); root.children.forEach(child => ailing(child, found)); return found; }, [root]);
  const isOpen = (node, level) => turned.get(keyOf(node)) ?? (level === 1 || words.length > 0 || unwell.has(keyOf(node)));
  const rows = useMemo(() => flat(root, isOpen).slice(1), [root, turned, unwell]);
  const turn = (node, level, to) => setTurned(before => new Map(before).set(keyOf(node), to ?? !isOpen(node, level)));
  const [at, setAt, move] = useWalk(box, rows.length, HEIGHT);
  const turnTo = to => rows[at] && turn(rows[at].node, rows[at].level, to);
  useKeys({ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowRight: () => turnTo(true), ArrowLeft: () => turnTo(false)});
  const unfold = () => {
    const next = new Map(), each = node => { next.set(keyOf(node), true); node.children.forEach(each); };
    each(root);
    setTurned(next);
  };
  const row = (index, style) => {
    const {node, level} = rows[index], open = isOpen(node, level), state = stateOf(node, members.has(keyOf(node)));
    return html`<div key=${keyOf(node)} class="node" role="treeitem" aria-level=${level - 1} aria-expanded=${node.children.length ? open : null} style=${style}>
      <span class="branch" style=${{paddingLeft: `${(level - 2) * 1.25}rem`}}>${node.children.length ? html`<button class="fold" aria-label=${`${open ? 'Fold' : 'Unfold'} ${node.name}`} onClick=${() => turn(node, level)}>${open ? '▾' : '▸'}</button>` : html`<span class="fold"></span>`}
      <${A} class="n-name" href=${objectPath({...node, group: groupOf(node)})} data-index=${index} onFocus=${() => setAt(index)}><span class="aside">${node.kind}/</span>${node.namespace && node.namespace !== home ? `${node.namespace}/` : ''}${node.name}<//></span>
      <${State} grade=${gradeOf(node.health)} text=${node.health}/>
      <span class="n-sync">${state && html`<${State} grade=${state[1]} text=${state[0]}/>`}</span>
      <span class="n-age aside"><${Age} time=${node.createdAt}/></span>
      <span class="n-message aside" title=${node.message}>${!open && unwell.get(keyOf(node)) && isWell(node) ? `${unwell.get(keyOf(node))} below aren’t well` : node.message}</span>
    </div>`;
  };
  if (!whole.children.length) return html`<p class="nothing">Nothing belongs to it.</p>`;
  return html`<div ref=${box}>
    <form class="filters tools" role="search" onSubmit=${event => event.preventDefault()}>
      <input type="search" aria-label="Search objects" placeholder="Search kind, name, health, drifted" value=${text} onInput=${event => setText(event.target.value)}/>
      <button type="button" class="quiet" onClick=${unfold}>Unfold all</button>
      <button type="button" class="quiet" onClick=${() => setTurned(new Map())}>Fold what is well</button></form>
    ${words.length > 0 && html`<p class="aside" role="status">${rows.length ? `${counted(rows.length, 'row')} of what fits and what it is below` : 'Nothing fits.'}</p>`}
    <${LongList} role="tree" aria-label="Objects" count=${rows.length} height=${HEIGHT} row=${row}/>
  </div>`;
}
