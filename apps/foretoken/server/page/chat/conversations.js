// The conversations that the browser keeps, each under a name of its own, so that tabs which have
// different ones open do not write over each other.
//
// A conversation is {id, title, changed, settings, turns}; a turn is {question, answer, foot, error}.
// What the speculation trace told of an answer is not kept: it is many times the text.

import { settingsFrom } from '../settings.js';
import { kept } from '../storage.js';

const PREFIX = 'foretoken.conversation.';
const TITLE_LENGTH = 60;

/** What was kept as a conversation, or null where it is none. */
function revive(stored) {
  if (typeof stored?.id !== 'string' || !Array.isArray(stored.turns)) return null;
  const text = (value) => (typeof value === 'string' ? value : '');
  return {
    id: stored.id,
    title: text(stored.title),
    changed: Number(stored.changed) || 0,
    settings: settingsFrom(stored.settings),
    turns: stored.turns.filter((turn) => typeof turn?.question === 'string').map((turn) => ({
      question: turn.question, answer: text(turn.answer), foot: text(turn.foot), error: text(turn.error),
    })),
  };
}

/** A conversation that nothing was said in. */
export function newConversation(settings) {
  const id = `${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  return { id, title: '', changed: 0, settings, turns: [] };
}

/** A conversation's title, or where it has none how it began. */
export function titleOf(conversation) {
  if (conversation.title !== '') return conversation.title;
  const text = (conversation.turns[0]?.question ?? '').trim().split('\n', 1)[0];
  if (text.length <= TITLE_LENGTH) return text || 'New chat';
  return `${text.slice(0, TITLE_LENGTH).trimEnd()} …`;
}

/** All conversations; `onChange` is called whenever there is another list to show. */
export class Conversations {
  constructor(onChange) {
    this.onChange = onChange;
    this.problem = ''; // Why not everything is kept: '', 'full' or 'refused'.
    this.known = new Map();
    this.read();
    addEventListener('storage', (event) => { // Another tab wrote.
      if (event.key !== null && !event.key.startsWith(PREFIX)) return;
      this.read();
      this.onChange();
    });
  }

  // Objects stay the same where they are as new: a conversation on the screen works on its own.
  read() {
    const found = new Map();
    for (const name of kept.names(PREFIX)) {
      const stored = revive(kept.getObject(name));
      if (!stored) continue;
      const own = this.known.get(stored.id);
      const asNew = own?.changed >= stored.changed;
      if (asNew) own.title = stored.title; // Another name is no other conversation.
      found.set(stored.id, asNew ? own : stored);
    }
    for (const [id, own] of this.known) if (kept.unkept.has(PREFIX + id)) found.set(id, own);
    this.known = found;
  }

  /** The one that was changed last comes first. */
  all() {
    return [...this.known.values()].sort((a, b) => b.changed - a.changed);
  }

  get(id) {
    return this.known.get(id);
  }

  /** Keeps a conversation as it is now, and adds it where it is not known yet. */
  keep(conversation) {
    this.known.set(conversation.id, conversation);
    conversation.changed = Date.now();
    this.write(conversation);
    this.onChange();
  }

  write(conversation) {
    this.problem = kept.set(PREFIX + conversation.id, JSON.stringify(conversation));
  }

  rename(conversation, title) {
    conversation.title = title;
    this.write(conversation);
    this.onChange();
  }

  remove(conversation) {
    this.known.delete(conversation.id);
    kept.remove(PREFIX + conversation.id);
    // There may be room now for what there was none for.
    this.problem = '';
    for (const other of this.known.values()) {
      if (kept.unkept.has(PREFIX + other.id)) this.write(other);
    }
    this.onChange();
  }

  /** Brings back what was removed, where it stood. */
  restore(conversation) {
    this.known.set(conversation.id, conversation);
    this.write(conversation);
    this.onChange();
  }
}
