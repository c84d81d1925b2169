// What belongs to a Sync: what is well is folded, what isn't is open; only rows in sight are drawn.
import {html, useMemo, useRef, useState} from './vendor/preact-htm.js';
import {A, Age, LongList, State, gradeOf, objectPath, useKeys, useWalk} from './lib.js';

const HEIGHT = 2.25;
const isWell = node => ['good', 'plain'].includes(gradeOf(node.health));
const keyOf = node => node.uid || `${node.kind}/${node.namespace}/${node.name}`;

// Marks each node that isn't well, or has such below it; returns how many there are.
function ailing(node, found) {
  let count = isWell(node) ? 0 : 1;
  for (const child of node.children) count += ailing(child, found);
  if (count) found.set(keyOf(node), count);
  return count;
}

function flat(node, isOpen, level = 1, rows = []) {
  rows.push({node, level});
  if (isOpen(node, level)) for (const child of node.children) flat(child, isOpen, level + 1, rows);
  return rows;
}

export function Tree({root, home}) {
  const [turned, setTurned] = useState(new Map());
  const box = useRef();
  const unwell = useMemo(() => { const found = new Map(); root.children.forEach(child => ailing(child, found)); return found; }, [root]);
  const isOpen = (node, level) => turned.get(keyOf(node)) ?? (level === 1 || unwell.has(keyOf(node)));
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
    const {node, level} = rows[index], open = isOpen(node, level), [group] = node.apiVersion.includes('/') ? node.apiVersion.split('/') : [''];
    return html`<div key=${keyOf(node)} class="node" role="treeitem" aria-level=${level - 1} aria-expanded=${node.children.length ? open : null} style=${style}>
      <span class="branch" style=${{width: `${(level - 2) * 1.25}rem`}}></span>
      ${node.children.length ? html`<button class="fold" aria-label=${`${open ? 'Fold' : 'Unfold'} ${node.name}`} onClick=${() => turn(node, level)}>${open ? '▾' : '▸'}</button>` : html`<span class="fold"></span>`}
      <${A} class="n-name" href=${objectPath({...node, group})} data-index=${index} onFocus=${() => setAt(index)}><span class="aside">${node.kind}/</span>${node.namespace && node.namespace !== home ? `${node.namespace}/` : ''}${node.name}<//>
      <${State} grade=${gradeOf(node.health)} text=${node.health}/>
      <span class="n-age aside"><${Age} time=${node.createdAt}/></span>
      <span class="n-message aside" title=${node.message}>${!open && unwell.get(keyOf(node)) && isWell(node) ? `${unwell.get(keyOf(node))} below aren’t well` : node.message}</span>
    </div>`;
  };
  if (!root.children.length) return html`<p class="nothing">Nothing belongs to it.</p>`;
  return html`<div ref=${box}>
    <p class="tools"><button class="quiet" onClick=${unfold}>Unfold all</button>
      <button class="quiet" onClick=${() => setTurned(new Map())}>Fold what is well</button></p>
    <${LongList} role="tree" aria-label="Objects" count=${rows.length} height=${HEIGHT} row=${row}/>
  </div>`;
}
