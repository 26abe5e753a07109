// Puts the page together: views, colours, and whether the server is there.

import { getJson, getModelJson, useModel } from './api.js';
import { Chat } from './chat/chat.js';
import { byId, make } from './dom.js';
import { Live } from './live.js';
import { Race } from './race.js';
import { SettingsDialog } from './settings.js';
import { kept } from './storage.js';

const VIEWS = ['chat', 'race', 'live'];
const THEMES = { auto: 'as the system', light: 'light', dark: 'dark' };
const THEME_STORE = 'foretoken.theme';
const MODEL_STORE = 'foretoken.model';
const RETRY_MS = 2000;

const chat = new Chat(() => settings.open());
const settings = new SettingsDialog(() => chat.settings, (chosen) => chat.changeSettings(chosen), meetServer);
const race = new Race(() => chat.settings);
const live = new Live();

function showView(name, focus = false) {
  const chosen = VIEWS.includes(name) ? name : 'chat';
  for (const view of VIEWS) {
    const tab = byId(`tab-${view}`);
    const shown = view === chosen;
    byId(view).hidden = !shown;
    tab.setAttribute('aria-selected', String(shown));
    tab.tabIndex = shown ? 0 : -1;
    if (shown && focus) tab.focus();
  }
  live.setShown(chosen === 'live');
  const address = chosen === 'chat' ? location.pathname : `#${chosen}`;
  if (location.hash.slice(1) !== (chosen === 'chat' ? '' : chosen)) history.replaceState(null, '', address);
}

function setUpTabs() {
  VIEWS.forEach((view, at) => {
    const tab = byId(`tab-${view}`);
    tab.addEventListener('click', () => showView(view));
    tab.addEventListener('keydown', (event) => {
      const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: VIEWS.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      showView(VIEWS[(moves[event.key] + VIEWS.length) % VIEWS.length], true);
    });
  });
  addEventListener('hashchange', () => showView(location.hash.slice(1)));
  showView(location.hash.slice(1));
}

function setUpTheme() {
  const button = byId('theme');
  const show = (theme) => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.dataset.theme = theme;
    button.setAttribute('aria-label', `Colours: ${THEMES[theme]}`);
    button.title = `Colours: ${THEMES[theme]}`;
  };
  button.addEventListener('click', () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(button.dataset.theme) + 1) % names.length];
    kept.set(THEME_STORE, next);
    show(next);
  });
  show(document.documentElement.dataset.theme ?? 'auto');
}

function showServer(state, text) {
  byId('server').dataset.state = state;
  byId('server-text').textContent = text;
  byId('server-text').hidden = state === 'ready' && !byId('model').hidden; // It says the same.
}

/** Lets the reader choose among the server's models; of one there is nothing to choose. */
function offerModels(names) {
  const select = byId('model');
  const several = names.length > 1;
  const chosen = names.includes(kept.get(MODEL_STORE)) ? kept.get(MODEL_STORE) : names[0];
  select.replaceChildren(...names.map((name) => make('option', { value: name, text: name })));
  select.value = chosen;
  select.hidden = !several;
  useModel(several ? chosen : '');
}

/** Asks the server what it is until it answers. */
async function meetServer() {
  try {
    const { data } = await getJson('/v1/models');
    offerModels(data.map(({ id }) => id));
    const props = await getModelJson('/props');
    chat.offer(props);
    settings.offer(props);
    race.offer(props);
    showServer('ready', props.model);
  } catch (error) {
    if (error.status === 401 || error.status === 500) {
      showServer('closed', error.status === 401 ? 'API key wanted' : error.message);
      return;
    }
    showServer('absent', error.status === 503 ? 'Loading' : 'Not reached');
    setTimeout(meetServer, RETRY_MS);
  }
}

byId('model').addEventListener('change', (event) => {
  kept.set(MODEL_STORE, event.target.value);
  showServer('absent', 'Loading');
  meetServer();
});
setUpTabs();
setUpTheme();
meetServer();
