// One object: as it is, who owns each field, who asked for it, and what the next sync does about it.
import {html, useState} from './vendor/preact-htm.js';
import {A, Age, Ago, State, counted, esc, found as drawn, gradeOf, objectPath, syncPath, useChangesAt, useData} from './lib.js';
import {Events} from './sync.js';

const GRADES = {same: 'good', git: 'warn', drift: 'warn', both: 'warn'};
const shown = value => value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
const owner = field => [...new Set(field.owners.map(each => each.manager))].join(', ') || 'nobody';

function Field({field}) {
  return html`<tr>
    <td><${State} grade=${GRADES[field.state] || 'plain'} text=${field.state}/></td>
    <td class="path"><code>${field.path}</code></td>
    <td class="values"><code>${shown(field.live)}</code>${field.wanted !== undefined && shown(field.wanted) !== shown(field.live) && html` <span class="aside">wanted</span> <code>${shown(field.wanted)}</code>`}</td>
    <td>${owner(field)} ${field.owners[0] && html`<${Ago} time=${field.owners[0].time}/>`}</td>
    <td>${field.commit && html`<code>${field.commit.sha.slice(0, 7)}</code> ${field.commit.subject} <span class="aside">${field.commit.author}</span>`}</td>
  </tr>`;
}

function Logs({path}) {
  const [query, setQuery] = useState('');
  const choose = event => { const {container, previous} = event.currentTarget.elements; setQuery(`?container=${esc(container.value)}&previous=${previous.checked}`); };
  return html`<h2>Logs</h2>${drawn(useData(`${path}/logs${query}`), ({containers, container, lines}) => html`<form class="filters" onChange=${choose}>
    <select name="container" aria-label="Container">${containers.map(name => html`<option selected=${name === container}>${name}</option>`)}</select>
    <label><input type="checkbox" name="previous"/> before its last restart</label></form>
    <pre class="live-object" tabindex="0">${lines.join('\n') || 'It has printed nothing.'}</pre>`)}`;
}

export function Thing({kind, namespace, name}) {
  const path = `/objects/${[kind, namespace, name].map(esc).join('/')}`;
  const version = useChangesAt(path), asked = useData(path, version, 1000), {data: found, busy, again} = asked;
  const [text, setText] = useState('');
  const word = text.toLowerCase();
  const fields = (found?.fields || []).filter(field => `${field.path} ${owner(field)} ${field.state}`.toLowerCase().includes(word));
  return html`<article class="object" aria-busy=${busy}>
    <nav class="crumbs" aria-label="Where you are"><${A} href="/">Syncs<//> / ${namespace === '-' ? 'cluster' : namespace} / ${kind}</nav>
    <header class="title"><h1>${name}</h1> <button onClick=${again}>Look again</button></header>
    ${drawn(asked, found => html`
      <p><${State} grade=${gradeOf(found.health)} text=${found.health}/> ${found.message}</p>
      <p class="links">${found.sync && html`<${A} href=${`/syncs/${syncPath(found.sync)}`}>Sync ${found.sync.namespace}/${found.sync.name}<//>`}
        ${found.owner && html`<${A} href=${objectPath(found.owner)}>${found.owner.kind}/${found.owner.name}, its owner<//>`}</p>
      <p class="said">${found.asker}${found.file && html`, from <span class="place">${found.file}${found.line ? `:${found.line}` : ''}</span>`}
        ${found.commit && html`, last changed by <code>${found.commit.sha.slice(0, 7)}</code> of ${found.commit.author}, <${Age} time=${found.commit.committedAt} ago/>: ${found.commit.subject}`}</p>
      ${kind === 'Pod' && html`<${Logs} path=${path}/>`}
      ${(found.unread || found.trouble) && html`<p class="note">${found.trouble || `What is asked for isn’t known: ${found.unread}`}</p>`}
      <h2>Fields <span class="aside">${fields.length}</span></h2>
      <form class="filters" role="search" onSubmit=${event => event.preventDefault()}><input type="search" aria-label="Search fields" placeholder="Search path, owner, state" value=${text} onInput=${event => setText(event.target.value)}/></form>
      <div class="scroll" tabindex="0" role="region" aria-label="Fields"><table class="owners"><thead><tr><th>State</th><th>Field</th><th>Value</th><th>Owner</th><th>Commit</th></tr></thead>
        <tbody>${fields.slice(0, 500).map(field => html`<${Field} key=${field.path} field=${field}/>`)}</tbody></table></div>
      ${fields.length > 500 && html`<p class="aside">and ${counted(fields.length - 500, 'field')} more: search for them</p>`}
      <h2>As it is</h2>
      <pre class="live-object" tabindex="0">${found.live.join('\n')}</pre>
      ${found.leftOut > 0 && html`<p class="aside">and ${counted(found.leftOut, 'line')} more</p>`}`, 'Explaining …')}
    <h2>Events</h2><${Events} path=${path} version=${version}/>
  </article>`;
}
