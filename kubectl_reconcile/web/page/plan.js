// What the next sync would do, read like a code review: object by object, each field with its why.
import {html, useState} from './vendor/preact-htm.js';
import {A, Age, Card, Crumbs, Out, Some, State, counted, esc, found, go, objectPath, summaryOf, syncPath, useChangesOf, useData} from './lib.js';
import {Doing, SyncNow} from './doings.js';

const OPEN_AT_FIRST = 15;
const KEY = /^(\s*(?:- )*)([^\s:#'"][^:]*|"[^"]*"):(\s.*|)$/;

function Code({text}) {
  const found = KEY.exec(text);
  if (!found) return html`<code>${text}</code>`;
  return html`<code>${found[1]}<span class="key">${found[2]}</span>:<span class="value">${found[3]}</span></code>`;
}

const LineOf = ({row: [what, before, after, text]}) => what === '~'
  ? html`<tr class="left"><td colspan="4">${counted(text, 'line')} more</td></tr>`
  : html`<tr class=${{'-': 'gone', '+': 'come', ' ': 'same'}[what]}><td class="number">${before || ''}</td><td class="number">${after || ''}</td>
    <td class="what"><span class="reader">${{'-': 'removed', '+': 'added'}[what]}</span><span aria-hidden="true">${what}</span></td><td><${Code} text=${text}/></td></tr>`;

function paired(rows) {
  const found = [];
  let gone = [], come = [];
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, come.length); n++) found.push([gone[n], come[n]]);
    gone = []; come = [];
  };
  for (const row of rows) {
    if (row[0] === '-') gone.push(row);
    else if (row[0] === '+') come.push(row);
    else { flush(); found.push([row, row]); }
  }
  flush();
  return found;
}

const Half = ({row, at}) => row
  ? html`<td class="number">${row[at]}</td><td class=${{'-': 'gone', '+': 'come'}[row[0]] || ''}><${Code} text=${row[3]}/></td>`
  : html`<td class="number"></td><td class="void"></td>`;

const Beside = ({rows}) => html`<table class="diff beside"><colgroup><col class="number"/><col/><col class="number"/><col/></colgroup><tbody>${paired(rows).map(([left, right]) => left?.[0] === '~'
  ? html`<tr class="left"><td colspan="4">${counted(left[3], 'line')} more</td></tr>`
  : html`<tr><${Half} row=${left} at=${1}/><${Half} row=${right} at=${2}/></tr>`)}</tbody></table>`;

const inGit = ({commit, author, link}) => commit && html` (<${Out} href=${link}>${commit.slice(0, 7)}<//>${author && ` by ${author}`})`;
const inCluster = ({manager, time}) => manager && html` (${manager}${time && html`, <${Age} time=${time} ago/>`})`;
const WHY = {
  git: (field, module) => module ? `wanted by ${module}` : html`changed in Git${inGit(field)}`,
  drift: field => html`drifted in the cluster${inCluster(field)}`,
  both: field => html`changed in Git${inGit(field)}, and drifted in the cluster${inCluster(field)}`,
  adopt: field => html`taken over${inCluster(field)}`,
};

const Fields = ({fields, module}) => fields.length > 0 && html`<${Some} class="fields" items=${fields} most=${30} draw=${field => html`
  <code>${field.path}</code> <span class="aside">${WHY[field.reason]?.(field, module)}${field.origin && html`, ${field.origin}`}</span>`}/>`;

function Change({change, beside, index}) {
  const [open, setOpen] = useState(index < OPEN_AT_FIRST && !change.cascade);
  const notes = change.notes.filter(text => !change.fields.length || !text.startsWith('.'));
  const {object} = change, came = change.rows.filter(row => row[0] === '+').length, went = change.rows.filter(row => row[0] === '-').length;
  return html`<details class="change ${change.grade}" open=${open} onToggle=${event => setOpen(event.target.open)} style=${{marginLeft: `${Math.min(change.depth, 4) * 1.25}rem`}}>
    <summary><span class="verdict ${change.op}">${change.verdict}</span> <b><span class="aside">${object.kind}/</span>${object.namespace && `${object.namespace}/`}${object.name}</b>
      <span class="counts"><span class="plus">+${came}</span> <span class="minus">−${went}</span></span>
      <span class="aside file">${change.module ? `by ${change.module}` : change.file ? `${change.file}${change.line ? `:${change.line}` : ''}` : ''}</span></summary>
    ${open && html`<div class="inside">
      <p class="links"><${A} href=${objectPath(object)}>The object as it is<//> ${change.link && html`<${Out} href=${change.link}>The file<//>`}</p>
      ${change.action && html`<p class="note"><b>${change.action.verb}</b> ${change.action.summary}</p>`}
      ${notes.length > 0 && html`<ul class="notes">${notes.map(text => html`<li>${text}</li>`)}</ul>`}
      <${Fields} ...${change}/>
      ${change.rows.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${nameOf(object)}>${beside ? html`<${Beside} rows=${change.rows}/>`
        : html`<table class="diff"><tbody>${change.rows.map((row, at) => html`<${LineOf} key=${at} row=${row}/>`)}</tbody></table>`}</div>`}
    </div>`}
  </details>`;
}

const fullName = ({namespace, name}) => `${namespace}/${name}`;
const WHAT = {create: 'new', delete: 'deleted', replace: 'recreated', unchanged: 'its files change'};

// What a Sync would do itself that the plan creates, changes or removes; only what changes is open.
function Nested({one, beside}) {
  const {plan} = one, said = [WHAT[one.op], ...one.why, one.notPlanned].filter(Boolean).join('; ');
  return html`<section class="nested" style=${{marginLeft: `${one.above.length * 1.25}rem`}}>
    <h2>Sync ${fullName(one.sync)}</h2>
    <p class="said">${said} ${plan && html`<span class="aside">${plan.changes.length ? summaryOf(plan) : 'nothing else changes'}</span>`}</p>
    ${plan && html`
      <${Card} items=${plan.problems} grade="bad" title="Problems" draw=${problem => html`
        <span class="place">${problem.path}${problem.line ? `:${problem.line}` : ''}</span> ${problem.message} ${problem.hint && html`<span class="aside">${problem.hint}</span>`}`}/>
      <${Holds} holds=${plan.holds}/>
      ${plan.changes.map((change, index) => html`<${Change} key=${nameOf(change.object) + change.op} change=${change} index=${index} beside=${beside}/>`)}`}
  </section>`;
}

// Actions that wait for approval, by the custom resource whose they are.
function heldActions(changes) {
  const found = new Map();
  for (const {action, held, owner} of changes)
    if (action && held && owner) found.set(nameOf(owner), [owner, [...(found.get(nameOf(owner))?.[1] || []), action]]);
  return [...found.values()];
}

const nameOf = object => `${object.kind}/${object.namespace ? `${object.namespace}/` : ''}${object.name}`;

const Names = ({objects}) => html`<${Some} class="plain" items=${objects} most=${50} draw=${nameOf}/>`;

const Holds = ({holds}) => holds.map(hold => html`<section class="card warn"><h2>Held: ${hold.reason}</h2><p>${hold.message}</p>
  <${Names} objects=${hold.objects}/>
  ${[['would go along', hold.along], ['of these Git still asks for', hold.asked || []]].map(([what, objects]) => objects.length > 0 && html`
    <h3>${counted(objects.length, 'object')} ${what}</h3><${Names} objects=${objects}/>`)}
</section>`);

export function Plan({namespace, name, query}) {
  const path = syncPath({namespace, name}), revision = query.get('revision') || '', beside = query.get('view') === 'beside';
  const version = useChangesOf(namespace, name);
  const asked = useData(`/syncs/${path}/plan${revision ? `?revision=${esc(revision)}` : ''}`, version, 5000), {data: plan, busy, again} = asked;
  const {data: sync} = useData(`/syncs/${path}`, version);
  const own = sync && plan && !revision;
  const held = own ? heldActions(plan.changes) : [];
  const to = (which, view) => {
    const next = new URLSearchParams();
    if (which) next.set('revision', which);
    if (view) next.set('view', 'beside');
    go(`/syncs/${path}/plan${next.toString() ? `?${next}` : ''}`, {replace: true});
  };
  return html`<article class="plan" aria-busy=${busy}>
    <${Crumbs} namespace=${namespace} name=${name}/>
    <header class="title"><h1>${revision ? `What ${revision} would do` : 'What comes next'}</h1></header>
    <form class="filters" onSubmit=${event => { event.preventDefault(); to(new FormData(event.target).get('revision').trim(), beside); }}>
      <input name="revision" aria-label="Branch, tag, commit or pull request" placeholder="What it follows, or a branch, tag, commit, refs/pull/12/head" value=${revision}/>
      <button>Show</button>
      <button type="button" aria-pressed=${beside} onClick=${() => to(revision, !beside)}>Side by side</button>
      <button type="button" onClick=${again}>Plan again</button>
    </form>
    ${found(asked, plan => html`
      <p class="said">${!plan.changes.length && html`<${State} grade=${plan.problems.length ? 'warn' : 'good'} text="No changes"/>`} ${summaryOf(plan)}
        <span class="aside"> at <${Out} href=${plan.link}><code>${plan.revision.slice(0, 7)}</code><//>, plan <code>${plan.hash.slice(0, 12)}</code></span></p>
      <${Card} items=${plan.problems} grade="bad" title="Problems" draw=${one => html`
        <span class="place">${one.path}${one.line ? `:${one.line}` : ''}</span> ${one.message} ${one.hint && html`<span class="aside">${one.hint}</span>`}`}/>
      <${Holds} holds=${plan.holds}/>
      ${own && html`<p class="doings">
        ${plan.changes.length > 0 && !sync.suspended && html`<${SyncNow} path=${path} sync=${sync}/>`}
        ${plan.holds.length > 0 && html`<${Doing} label="Approve what is held" title="Delete them" may=${sync.mayWrite} path=${`/syncs/${path}/approve`} body=${{approval: plan.approval}}
          text="Just these deletions go through. If others are held by then, nothing is approved."><${Holds} holds=${plan.holds}/><//>`}
        ${held.map(([object, actions]) => html`<${Doing} label=${`Approve actions of ${nameOf(object)}`} title="Run them" path=${`${objectPath(object)}/approve`}
          body=${{keys: actions.map(each => each.key)}} text="Just these actions go through."><ul>${actions.map(each => html`<li>${each.summary}</li>`)}</ul><//>`)}
      </p>`}
      ${plan.changes.map((change, index) => html`<${Change} key=${nameOf(change.object) + change.op} change=${change} index=${index} beside=${beside}/>`)}
      ${plan.nested.map(one => html`<${Nested} key=${[...one.above, one.sync].map(fullName).join('>')} one=${one} beside=${beside}/>`)}`, 'Planning …')}
  </article>`;
}
