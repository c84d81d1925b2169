// One Sync: how it is and why, what belongs to it, what it has applied, and what was said of it.
import {html, useMemo} from './vendor/preact-htm.js';
import {A, Age, Ago, Card, Crumbs, Out, State, counted, found, go, gradeOf, syncPath, useChangesOf, useData, useKeys, useLocation} from './lib.js';
import {Doing, SyncNow} from './doings.js';
import {Tree, judge} from './tree.js';

const GOOD = {Ready: 'True', Synced: 'True', Healthy: 'True', Reconciling: 'False', Stalled: 'False'};
const gradeOfCondition = one => !GOOD[one.type] ? 'plain' : GOOD[one.type] === one.status ? 'good' : one.status === 'Unknown' ? 'warn' : 'bad';
const short = sha => (sha || '').startsWith('worktree') ? 'worktree' : (sha || '').slice(0, 7);

const placed = each => html`${each.place && html`<${Out} class="place" href=${each.link}>${each.place}<//> `}${each.text}`;

function Facts({sync}) {
  const facts = [
    ['Follows', sync.url ? html`${sync.url.replace(/^https?:\/\//, '')} ${sync.ref}${sync.path === '.' ? '' : `, ${sync.path}`}` : 'nothing: applied by hand'],
    ['Applied', html`<${Out} href=${sync.appliedLink}><code>${short(sync.applied) || '–'}</code><//>`],
    ['Tried', sync.tried && sync.tried !== sync.applied && html`<code>${short(sync.tried)}</code>`],
    ['Objects', sync.objects ?? '–'],
    ['Health', Object.entries(sync.health).map(([word, count]) => html`<span class="pad"><${State} grade=${gradeOf(word)} text=${`${count} ${word}`}/></span>`)],
    ['Changed', html`<${Age} time=${sync.changedAt} ago/>`],
  ];
  return html`<dl class="facts">${facts.filter(([, what]) => what).map(([name, what]) => html`<div><dt>${name}</dt><dd>${what}</dd></div>`)}</dl>`;
}

function History({path, version, may}) {
  return found(useData(`/syncs/${path}/history`, version, 2000), data => html`${data.trouble && html`<p class="aside">Who committed what can’t be told: ${data.trouble}</p>`}
    ${!data.entries.length && html`<p class="nothing">It has applied nothing yet.</p>`}
    <ol class="history">${data.entries.map(each => html`<li class=${each.current ? 'current' : ''}>
      <${Out} href=${each.link}><code>${short(each.revision)}</code><//>
      <${State} grade=${each.result === 'Synced' ? 'good' : 'warn'} text=${each.current ? `${each.result}, now` : each.result}/>
      <${Ago} time=${each.time}/>
      <span class="what">${each.commit ? html`${each.commit.subject} <span class="aside">${each.commit.author}</span>` : each.message || ''}</span>
      <span class="aside did">${['created', 'updated', 'deleted', 'failed'].filter(word => each[word]).map(word => `${each[word]} ${word}`).join(', ')}</span>
      ${!each.current && each.result === 'Synced' && html`<${Doing} label="Go back" title=${`Go back to ${short(each.revision)}`} may=${may} path=${`/syncs/${path}/rollback`}
        body=${{revision: each.revision}} foresees=${`/syncs/${path}/plan?revision=${each.revision}`} text="The Sync stays at that commit until it is resumed."/>`}
    </li>`)}</ol>`);
}

export function Events({path, version}) {
  return found(useData(`${path}/events`, version, 2000), ({events}) => !events.length ? html`<p class="nothing">Nothing was said of it lately.</p>` : html`<ol class="events">${events.map(each => html`<li>
    <${State} grade=${each.type === 'Warning' ? 'warn' : 'plain'} text=${each.reason}/>
    <${Ago} time=${each.time}/>
    <span class="what"><span class="aside">${each.object.kind}/${each.object.name}</span> ${each.message}</span>
  </li>`)}</ol>`);
}

function Objects({path, version, home, follows}) {
  const asked = useData(`/syncs/${path}/tree`, version, 2000);
  const {data: plan} = useData(follows && `/syncs/${path}/plan`, version, 5000);
  const stateOf = useMemo(() => judge(plan), [plan]);
  const coming = (plan?.changes || []).filter(change => change.op === 'create').length;
  return found(asked, ({root, unseen}) => html`<div aria-busy=${asked.busy}>
    ${coming > 0 && html`<p class="note">${counted(coming, 'object')} that the source asks for ${coming === 1 ? 'isn’t' : 'aren’t'} there yet: <${A} href=${`/syncs/${path}/plan`}>what comes next<//></p>`}
    <${Tree} root=${root} home=${home} stateOf=${stateOf}/>
    ${unseen.length > 0 && html`<p class="aside">Can’t list ${unseen.join(', ')}; such aren’t shown.</p>`}
  </div>`);
}

const TABS = [['objects', 'Objects'], ['history', 'History'], ['events', 'Events'], ['conditions', 'Conditions']];

export function Sync({namespace, name}) {
  const path = syncPath({namespace, name});
  const version = useChangesOf(namespace, name);
  const asked = useData(`/syncs/${path}`, version), {data: sync, error} = asked;
  const {hash} = useLocation(), tab = TABS.some(([which]) => which === hash) ? hash : 'objects';
  const plan = `/syncs/${path}/plan`;
  useKeys({p: () => go(plan)});
  const choose = which => go(`#${which}`, {replace: true});
  if (!sync || error?.status === 404) return html`<h1>${name}</h1>${found({...asked, data: null})}`;
  const panel = {
    objects: () => html`<${Objects} path=${path} version=${version} home=${namespace} follows=${!!(sync.url && sync.applied)}/>`,
    history: () => html`<${History} path=${path} version=${version} may=${sync.mayWrite}/>`,
    events: () => html`<${Events} path=${`/syncs/${path}`} version=${version}/>`,
    conditions: () => html`<ul class="plain conditions">${sync.conditions.map(one => html`<li>
      <${State} grade=${gradeOfCondition(one)} text=${`${one.type}: ${one.status}`}/> <${Ago} time=${one.lastTransitionTime}/>
      <span class="what">${one.reason}${one.message && `: ${one.message}`}</span></li>`)}</ul>`,
  }[tab] || (() => null);
  return html`<article class="sync">
    <${Crumbs} namespace=${namespace}/>
    <header class="title"><h1>${name}</h1> <${State} grade=${sync.grade} text=${sync.state}/>
      ${sync.url && html`<${A} class="button" href=${plan}>What comes next<//>`}
      ${sync.url && !sync.suspended && html`<${SyncNow} path=${path} sync=${sync}/>`}
      ${sync.suspended || sync.pinned ? html`<${Doing} label="Resume" title="Resume" may=${sync.mayWrite} path=${`/syncs/${path}/resume`} foresees=${!sync.pinned && `/syncs/${path}/plan`}
          text=${sync.pinned ? `It follows ${sync.followedBefore} again.` : 'The daemon puts right what differs from Git.'}/>`
        : html`<${Doing} label="Suspend" title="Suspend" may=${sync.mayWrite} path=${`/syncs/${path}/suspend`} text="The cluster is left as it is, drift too, until somebody resumes it."/>`}</header>
    ${sync.keptByAnother && html`<p class="note">This Sync is a member of another Sync, which may revert your changes: change it in Git, too.</p>`}
    <p class="said">${sync.message}</p>
    ${sync.pinned && html`<p class="note">It was rolled back to ${sync.ref}; before, it followed ${sync.followedBefore}.</p>`}
    <${Facts} sync=${sync}/>
    <${Card} items=${sync.problems} grade="bad" title="Problems" draw=${placed}/>
    <${Card} items=${sync.warnings} grade="warn" title="Warnings" draw=${placed}/>
    <${Card} items=${sync.unhealthy} grade="warn" title="Not well" draw=${each => html`<b>${each.object}</b> <${State} grade=${gradeOf(each.health)} text=${each.health}/>
      <${Ago} time=${each.since}/> ${each.message}`}/>
    <div class="tabs" role="tablist">${TABS.map(([which, title]) => html`<button role="tab" id=${`tab-${which}`}
      aria-selected=${tab === which} aria-controls="panel" onClick=${() => choose(which)}>${title}</button>`)}</div>
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>${panel()}</div>
  </article>`;
}
