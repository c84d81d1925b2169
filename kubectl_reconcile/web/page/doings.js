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

export function Doing({label, may = true, ...rest}) {
  const [open, setOpen] = useState(false), [said, setSaid] = useState('');
  return html`<span class="doing"><button disabled=${!may} title=${may ? null : 'You may not write this Sync'} onClick=${() => { setSaid(''); setOpen(true); }}>${label}</button>
    <span role="status" class="aside">${said}</span>
    ${open && html`<${Question} ...${rest} close=${() => setOpen(false)} done=${setSaid}/>`}</span>`;
}

export const SyncNow = ({path, may}) => html`<${Doing} label="Sync now" title="Sync now" may=${may} path=${`/syncs/${path}/sync`} foresees=${`/syncs/${path}/plan`}
  text="The daemon reads the source once more, and does what it then asks for."/>`;
