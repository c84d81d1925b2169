// What a person may have done: it says first what it will do, and is done once they say so.
import {html, useEffect, useRef, useState} from './vendor/preact-htm.js';
import {Trouble, found, post, summaryOf, useData} from './lib.js';

const Foreseen = ({path}) => found(useData(path), plan => html`<p><b>${summaryOf(plan)}</b>${plan.holds.length > 0 && ', and some deletions wait for approval'}</p>`, 'Planning …');

function Question({title, text, path, body, foresees, close, done, children}) {
  const box = useRef();
  const [state, set] = useState({});
  useEffect(() => box.current.showModal(), []);
  const act = event => {
    event.preventDefault();
    set({busy: true});
    post(path, body || {}).then(({said}) => { done(said); close(); }, error => set({error}));
  };
  return html`<dialog ref=${box} aria-labelledby="question" onClose=${close}>
    <h2 id="question">${title}</h2><p>${text}</p>${children}
    ${foresees && html`<${Foreseen} path=${foresees}/>`}
    ${state.error && html`<${Trouble} error=${state.error}/>`}
    <form method="dialog" class="answers" onSubmit=${act}><button type="button" onClick=${close}>Leave it</button>
      <button class="button" disabled=${state.busy}>${state.busy ? 'Asking …' : title}</button></form>
  </dialog>`;
}

// `told` says how it goes on of what was said once it was asked for.
export function Doing({label, may = true, told = said => said, begun, ...rest}) {
  const [open, setOpen] = useState(false), [said, setSaid] = useState('');
  return html`<span class="doing"><button disabled=${!may} title=${may ? null : 'You may not write this Sync'} onClick=${() => { setSaid(''); setOpen(true); begun?.(); }}>${label}</button>
    <span role="status" class="aside">${told(said)}</span>
    ${open && html`<${Question} ...${rest} close=${() => setOpen(false)} done=${setSaid}/>`}</span>`;
}

export function SyncNow({path, sync}) {
  const before = useRef();
  const told = said => said && (sync.requested ? 'A sync is running …' : before.current === sync.resourceVersion ? said : 'The sync has ended');
  return html`<${Doing} label="Sync now" title="Sync now" may=${sync.mayWrite} path=${`/syncs/${path}/sync`} foresees=${`/syncs/${path}/plan`} told=${told}
    begun=${() => { before.current = sync.resourceVersion; }} text="The daemon reads the source once more, and does what it then asks for."/>`;
}
