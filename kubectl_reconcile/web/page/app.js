// The frame around all pages: which one is shown, whether what it shows is live, and the keys.
import {html, render, useEffect, useRef, useState} from './vendor/preact-htm.js';
import {A, Trouble, isConnected, useData, useKeys, useLocation, usePushes} from './lib.js';
import {Fleet} from './fleet.js';
import {Sync} from './sync.js';
import {Plan} from './plan.js';
import {Thing} from './object.js';

const KEYS = [['/', 'search'], ['j', 'next row'], ['k', 'row before'], ['Enter', 'open'], ['g', 'all Syncs'],
  ['p', 'what comes next, of a Sync'], ['?', 'these keys'], ['Esc', 'close']];

function Help({close}) {
  const box = useRef();
  useEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} class="help" aria-labelledby="keys" onClose=${close}>
    <h2 id="keys">Keys</h2>
    <dl>${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <form method="dialog"><button>Close</button></form>
  </dialog>`;
}

function Live() {
  const [live, set] = useState(isConnected());
  usePushes(() => set(isConnected()));
  return html`<span class="live ${live ? 'is' : ''}" role="status"><span class="dot" aria-hidden="true"></span>${live ? 'live' : 'not live'}</span>`;
}

function page(path, query) {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (!parts.length) return [html`<${Fleet} query=${query}/>`, 'Syncs'];
  if (parts[0] === 'objects') return [html`<${Thing} key=${path} kind=${parts[1]} namespace=${parts[2]} name=${parts[3]}/>`, parts[3]];
  const [, namespace, name, which] = parts;
  if (which === 'plan') return [html`<${Plan} key=${path} namespace=${namespace} name=${name} query=${query}/>`, `${name}: plan`];
  return [html`<${Sync} key=${path} namespace=${namespace} name=${name}/>`, name];
}

function App() {
  const {path, query} = useLocation();
  const {data: about, error} = useData('/about');
  const [help, setHelp] = useState(false);
  const [shown, title] = page(path, query);
  useEffect(() => { document.title = `${title} – kubectl reconcile`; }, [title]);
  useKeys({'?': () => setHelp(true), '/': () => document.querySelector('input[type=search]')?.focus(),
    g: () => document.querySelector('.home').click()});
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <header class="top">
      <${A} class="home" href="/"><img src="/assets/icon.svg" alt="" width="20" height="20"/> kubectl reconcile<//>
      <span class="server" title=${about?.server}>${about && (about.context || about.server.replace(/^https?:\/\//, ''))}</span>
      <${Live}/>
      ${about?.guest && html`<a href="/start" title="Signed in; sign out">${about.name}</a>`}
      <button class="quiet" aria-label="Keys" onClick=${() => setHelp(true)}>?</button>
    </header>
    <main id="main" tabindex="-1">${error?.status === 401 ? html`<${Trouble} error=${error}/>` : shown}</main>
    ${help && html`<${Help} close=${() => setHelp(false)}/>`}`;
}

render(html`<${App}/>`, document.getElementById('page'));
