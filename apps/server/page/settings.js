// What the reader has chosen: kept by the browser, the API key only as long as its tab lives.

import { byId, make } from './dom.js';

const STORE = 'foretoken.settings';
const KEY_STORE = 'foretoken.key';
const DEFAULTS = {
  mode: '', lookahead: '', fanout: '', temperature: '0.7', seed: '1', max_tokens: '200', system: '',
};

/** Modes in words, for those that need them. */
export const MODE_NAMES = {
  ar: 'autoregressive',
  sd: 'speculative',
  ssd: 'speculative speculative',
  ngram: 'prompt lookup',
  sssd: 'retrieval, fused',
  rest: 'retrieval only',
  trie: 'lookahead trie',
  auto: 'whichever is fastest',
};

let values = { ...DEFAULTS, ...JSON.parse(localStorage.getItem(STORE) ?? '{}') };

/** The key to send with every request; empty where none is needed. */
export const apiKey = () => sessionStorage.getItem(KEY_STORE) ?? '';

/** The conversation with the system message before it, where there is one. */
export function withSystem(messages) {
  return values.system ? [{ role: 'system', content: values.system }, ...messages] : messages;
}

/** The options of a request; `mode` overrides the one chosen. */
export function requestOptions(mode = values.mode) {
  const speculative = {};
  if (mode) speculative.mode = mode;
  if (mode !== 'ar') {
    if (values.lookahead) speculative.lookahead = Number(values.lookahead);
    if (values.fanout) speculative.fanout = Number(values.fanout);
  }
  return {
    temperature: Number(values.temperature),
    seed: Number(values.seed),
    max_tokens: Number(values.max_tokens),
    ...(Object.keys(speculative).length > 0 ? { speculative } : {}),
  };
}

function fill(form) {
  for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
  form.elements.key.value = apiKey();
}

function read(form) {
  for (const name of Object.keys(DEFAULTS)) values[name] = form.elements[name].value.trim();
  localStorage.setItem(STORE, JSON.stringify(values));
  const key = form.elements.key.value.trim();
  const changed = key !== apiKey();
  sessionStorage.setItem(KEY_STORE, key);
  return changed;
}

/** Shows the dialog. */
export function openSettings() {
  fill(byId('settings-form'));
  byId('settings').showModal();
}

/** Offers the modes that the server has. */
export function offerModes(modes) {
  const select = byId('settings-form').elements.mode;
  select.replaceChildren(select.options[0], ...modes.map((mode) =>
    make('option', { value: mode, text: `${mode.toUpperCase()}  ${MODE_NAMES[mode] ?? ''}` })));
  if (!modes.includes(values.mode)) values.mode = '';
  select.value = values.mode;
}

/** Wires the dialog; `onKey` is called when another API key was entered. */
export function setUpSettings(onKey) {
  const dialog = byId('settings');
  const form = byId('settings-form');
  byId('open-settings').addEventListener('click', openSettings);
  byId('reset-settings').addEventListener('click', () => {
    values = { ...DEFAULTS };
    fill(form);
  });
  form.addEventListener('submit', (event) => {
    if (event.submitter?.value === 'save' && read(form)) onKey();
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close(); // The backdrop.
  });
}
