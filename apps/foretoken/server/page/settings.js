// What the reader chooses about answers: each conversation has settings of its own, and a new one
// begins with those chosen last. Values are as the form has them, text.

import { byId, make } from './dom.js';
import { kept, ofThisTab } from './storage.js';

const STORE = 'foretoken.settings';
const KEY_STORE = 'foretoken.key';
// An empty seed is another one for every answer, empty max_tokens are what the context holds.
const DEFAULTS = {
  mode: '', lookahead: '', fanout: '', temperature: '0.7', seed: '', max_tokens: '', system: '',
};

/** Modes in words, for those that need them. */
export const MODE_NAMES = {
  ar: 'autoregressive',
  sd: 'speculative',
  ssd: 'speculative speculative',
  sd2: 'speculative, second draft',
  sd3: 'speculative, third draft',
  ngram: 'prompt lookup',
  sssd: 'retrieval, fused',
  rest: 'retrieval only',
  trie: 'lookahead trie',
  auto: 'whichever is fastest',
};

/** The key to send with every request; empty where none is needed. */
export const apiKey = () => ofThisTab.get(KEY_STORE) ?? '';

/** `stored` with every setting there is and no other. */
export function settingsFrom(stored) {
  const known = Object.keys(DEFAULTS).filter((name) => typeof stored?.[name] === 'string');
  return { ...DEFAULTS, ...Object.fromEntries(known.map((name) => [name, stored[name]])) };
}

/** What a new conversation begins with. */
export const lastSettings = () => settingsFrom(kept.getObject(STORE));

/** The conversation with the system message before it, where there is one. */
export function withSystem(settings, messages) {
  return settings.system ? [{ role: 'system', content: settings.system }, ...messages] : messages;
}

/** The seed that was chosen, or another one each time. */
export function chooseSeed(settings) {
  return settings.seed === '' ? crypto.getRandomValues(new Uint32Array(1))[0] : Number(settings.seed);
}

/** The options of a request; `mode` overrides the one chosen. */
export function requestOptions(settings, seed, mode = settings.mode) {
  const speculative = {};
  if (mode) speculative.mode = mode;
  if (mode !== 'ar') {
    if (settings.lookahead) speculative.lookahead = Number(settings.lookahead);
    if (settings.fanout) speculative.fanout = Number(settings.fanout);
  }
  return {
    temperature: Number(settings.temperature),
    seed,
    ...(settings.max_tokens ? { max_tokens: Number(settings.max_tokens) } : {}),
    ...(Object.keys(speculative).length > 0 ? { speculative } : {}),
  };
}

/** The dialog in which settings and the API key are entered. */
export class SettingsDialog {
  /** `read()` gives the settings to show, `write(settings)` takes the chosen ones. */
  constructor(read, write, onKey) {
    Object.assign(this, { read, write, onKey });
    this.dialog = byId('settings');
    this.form = byId('settings-form');
    byId('open-settings').addEventListener('click', () => this.open());
    byId('reset-settings').addEventListener('click', () => this.fill(DEFAULTS));
    this.form.addEventListener('submit', (event) => {
      if (event.submitter?.value === 'save') this.save();
    });
    this.dialog.addEventListener('click', (event) => {
      if (event.target === this.dialog) this.dialog.close(); // The backdrop.
    });
  }

  open() {
    this.fill(this.read());
    this.form.elements.key.value = apiKey();
    this.dialog.showModal();
  }

  fill(settings) {
    for (const [name, value] of Object.entries(settings)) this.form.elements[name].value = value;
  }

  save() {
    const { elements } = this.form;
    const entries = Object.keys(DEFAULTS).map((name) => [name, elements[name].value.trim()]);
    const settings = Object.fromEntries(entries);
    kept.set(STORE, JSON.stringify(settings));
    this.write(settings);
    const key = elements.key.value.trim();
    if (key === apiKey()) return;
    ofThisTab.set(KEY_STORE, key);
    this.onKey();
  }

  /** Offers what the server has. */
  offer({ modes, context }) {
    const select = this.form.elements.mode;
    select.replaceChildren(select.options[0], ...modes.map((mode) =>
      make('option', { value: mode, text: `${mode.toUpperCase()}  ${MODE_NAMES[mode] ?? ''}` })));
    if (context > 0) this.form.elements.max_tokens.placeholder = `up to ${context}`;
  }
}
