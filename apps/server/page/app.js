// Puts the page together: views, colours, and whether the server is there.

import { getJson } from './api.js';
import { Chat } from './chat/chat.js';
import { byId } from './dom.js';
import { Live } from './live.js';
import { Race } from './race.js';
import { SettingsDialog } from './settings.js';
import { kept } from './storage.js';

const VIEWS = ['chat', 'race', 'live'];
const THEMES = { auto: 'as the system', light: 'light', dark: 'dark' };
const THEME_STORE = 'foretoken.theme';
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
}

/** Asks the server what it is until it answers. */
async function meetServer() {
  try {
    const props = await getJson('/props');
    chat.offer(props);
    settings.offer(props);
    race.offer(props);
    showServer('ready', props.model);
  } catch (error) {
    if (error.status === 401) {
      showServer('closed', 'API key wanted');
      return;
    }
    showServer('absent', error.status === 503 ? 'Loading' : 'Not reached');
    setTimeout(meetServer, RETRY_MS);
  }
}

setUpTabs();
setUpTheme();
meetServer();
