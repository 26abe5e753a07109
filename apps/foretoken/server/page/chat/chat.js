// The chat: which conversation is on the screen, what is typed, and the rounds beside it.

import { byId, make } from '../dom.js';
import { lastSettings } from '../settings.js';
import { kept, ofThisTab } from '../storage.js';
import { ConversationList } from './conversation_list.js';
import { Conversations, newConversation, titleOf } from './conversations.js';
import { RoundStrip } from './rounds.js';
import { SideDrawer } from './side_drawer.js';
import { Talk } from './talk.js';

const ORIGINS_STORE = 'foretoken.origins';
const CURRENT_STORE = 'foretoken.current';
const STARTERS = [
  'Tell me a story about a dragon.',
  'Tell me a story about a boy who finds a key.',
  'Tell me a story about a rainy day.',
];

export class Chat {
  constructor(openSettings) {
    this.openSettings = openSettings;
    this.modes = null; // The server's modes, once they are known.
    this.talks = new Map(); // By conversation, those that were on the screen.
    this.strip = new RoundStrip(byId('strip'), byId('round'), byId('figures'));
    this.transcript = byId('transcript');
    this.prompt = byId('prompt');
    this.drawer = new SideDrawer();
    this.atEnd = true; // Whether the reader looks at the transcript's end.
    this.conversations = new Conversations(() => this.onListChange());
    this.list = new ConversationList(this.conversations, (id) => this.talks.get(id)?.busy === true, {
      open: (conversation) => this.openConversation(conversation),
      removed: (conversation) => this.leave(conversation),
    });
    this.setUpComposer();
    this.setUpTools();
    this.showOrigins(kept.get(ORIGINS_STORE) === 'yes');
    const last = this.conversations.get(ofThisTab.get(CURRENT_STORE));
    this.open(last ?? newConversation(lastSettings()));
  }

  setUpComposer() {
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.talk.busy) this.talk.stop();
      else this.send(this.prompt.value.trim());
    });
    this.prompt.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') this.talk.stop();
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      this.send(this.prompt.value.trim());
    });
    this.prompt.addEventListener('input', () => this.fitPrompt());
    byId('starters').append(...STARTERS.map((text) => {
      const button = make('button', { class: 'quiet', type: 'button', text });
      button.addEventListener('click', () => this.send(text));
      return make('li', {}, button);
    }));
  }

  setUpTools() {
    this.transcript.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.transcript;
      this.atEnd = scrollHeight - scrollTop - clientHeight < 40;
    });
    for (const button of document.querySelectorAll('.new-chat')) {
      button.addEventListener('click', () => this.openNew());
    }
    byId('origins').addEventListener('click', () => this.showOrigins(!this.origins));
    // A browser ends connections before it hides the page; stopped here, an answer does not fail.
    for (const leaving of ['beforeunload', 'pagehide']) {
      addEventListener(leaving, () => {
        this.takeDown();
        for (const talk of this.talks.values()) talk.stop();
      });
    }
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'hidden') this.takeDown();
    });
  }

  fitPrompt() {
    this.prompt.style.height = 'auto';
    this.prompt.style.height = `${this.prompt.scrollHeight + 2}px`;
  }

  showOrigins(shown) {
    this.origins = shown;
    kept.set(ORIGINS_STORE, shown ? 'yes' : 'no');
    byId('origins').setAttribute('aria-pressed', String(shown));
    byId('legend').hidden = !shown;
    this.transcript.classList.toggle('origins', shown);
    for (const talk of this.talks.values()) {
      for (const answer of talk.answers) answer.tokens.setReachable(shown);
    }
  }

  /** Takes note of what the server has. */
  offer({ modes }) {
    this.modes = modes;
  }

  /** The settings of the conversation on the screen. */
  get settings() {
    return this.settingsOf(this.talk.conversation);
  }

  /** A conversation's settings; the server may lack a mode that it had once. */
  settingsOf({ settings }) {
    return this.modes?.includes(settings.mode) === false ? { ...settings, mode: '' } : settings;
  }

  changeSettings(settings) {
    const { conversation } = this.talk;
    conversation.settings = settings;
    if (conversation.turns.length > 0) this.conversations.keep(conversation);
  }

  openNew() {
    this.openConversation(newConversation(lastSettings()));
    this.prompt.focus();
  }

  openConversation(conversation) {
    this.drawer.close();
    if (conversation !== this.talk.conversation) this.open(conversation);
  }

  /** Puts a conversation on the screen. What is being answered in another goes on. */
  open(conversation) {
    let talk = this.talks.get(conversation.id);
    if (talk?.conversation !== conversation) {
      talk = new Talk(conversation, this);
      this.talks.set(conversation.id, talk);
    }
    if (this.talk && !this.talk.busy && this.talk.views.length === 0) {
      this.talks.delete(this.talk.conversation.id);
    }
    this.talk = talk;
    this.transcript.replaceChildren(talk.element);
    this.strip.clear();
    if (talk.rounds.length > 0) this.strip.add(talk.rounds);
    ofThisTab.set(CURRENT_STORE, conversation.id);
    this.showState();
    this.atEnd = true;
    this.follow();
  }

  /** A conversation was removed. */
  leave(conversation) {
    this.talks.get(conversation.id)?.stop();
    this.talks.delete(conversation.id);
    if (this.talk.conversation === conversation) this.open(newConversation(lastSettings()));
  }

  showState() {
    const { conversation, busy } = this.talk;
    const begun = conversation.turns.length > 0;
    byId('empty').hidden = begun;
    byId('chat').classList.toggle('begun', begun);
    const send = byId('send');
    send.textContent = busy ? 'Stop' : 'Send';
    send.classList.toggle('stop', busy);
    document.title = begun ? `${titleOf(conversation)} – Foretoken` : 'Foretoken';
    this.list.show(conversation.id);
  }

  /** Keeps the end in view while the reader is there. */
  follow() {
    if (this.atEnd) this.transcript.scrollTop = this.transcript.scrollHeight;
  }

  send(text) {
    if (text === '' || this.talk.busy) return;
    this.prompt.value = '';
    this.fitPrompt();
    this.talk.ask(text);
  }

  /** A talk begins to answer. */
  onBegin(talk) {
    this.conversations.keep(talk.conversation);
    if (talk !== this.talk) return;
    this.strip.clear();
    this.showState();
    this.atEnd = true;
    this.follow();
    // What was pressed may be gone now.
    if (document.activeElement === document.body) this.transcript.focus({ preventScroll: true });
  }

  /** A talk has answered, or failed to. */
  onEnd(talk) {
    const { conversation } = talk;
    const removed = this.talks.get(conversation.id) !== talk;
    if (!removed) this.conversations.keep(conversation);
    if (talk !== this.talk) return;
    this.showState();
    this.follow();
  }

  /** An answer has grown. */
  onRounds(talk, answer, rounds) {
    if (talk !== this.talk) return;
    if (rounds.length > 0 && answer === talk.answers.at(-1)) this.strip.add(rounds);
    this.follow();
  }

  onPick(round) {
    this.strip.pickNumber(round);
  }

  /** The list has changed, perhaps by another tab, which may have gone on with what is shown here. */
  onListChange() {
    if (!this.talk) return;
    const newer = this.conversations.get(this.talk.conversation.id);
    if (newer && newer !== this.talk.conversation && !this.talk.busy) this.open(newer);
    else this.showState();
  }

  /** The tab may be closed: keeps what came so far. */
  takeDown() {
    for (const talk of this.talks.values()) {
      if (!talk.busy) continue;
      talk.takeDown();
      this.conversations.keep(talk.conversation);
    }
  }
}
