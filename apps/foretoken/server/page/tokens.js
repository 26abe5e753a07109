// Text made of tokens, each of which knows how it came.

import { announce, make, visible } from './dom.js';

const SOURCES = {
  cache: 'the speculation cache',
  jit: 'the draft, just in time',
  draft: 'the draft',
  draft2: 'the second draft',
  draft3: 'the third draft',
  ngram: 'prompt lookup',
  retrieval: 'retrieval',
};

/** Where a round's proposal came from, in words. */
export function describeSource(round) {
  if (round.proposed.length === 0) return 'nothing was proposed';
  return `proposed by ${SOURCES[round.source] ?? round.source}`;
}

/** How a token came, in a sentence. `at` is its place in its round. */
export function describeToken(token, round, at) {
  const name = `“${visible(token.text)}”`;
  if (token.origin === 'bonus') {
    return `${name}: the target’s own, in round ${round.round} after ${round.accepted} of ` +
      `${round.proposed.length} proposed tokens were accepted.`;
  }
  const how = token.origin === 'fallback' ? 'accepted, after a cache miss' : 'accepted';
  return `${name}: ${how}, token ${at + 1} of ${round.proposed.length} in round ${round.round}, ` +
    `${describeSource(round)}.`;
}

/**
 * The tokens of one text in an element. With `onPick(token, round, at)` one of them can be picked,
 * by pointer or by the arrow keys; it is called with null when none is any more.
 */
export class TokenText {
  constructor(element, onPick = null) {
    this.element = element;
    this.tokens = []; // {token, round, at, span}
    this.ids = [];
    this.text = '';
    this.shown = 0;
    this.picked = -1;
    this.onPick = onPick;
    if (onPick) this.listen();
  }

  /** Adds a round's tokens. */
  addRound(round) {
    const fragment = document.createDocumentFragment();
    round.tokens.forEach((token, at) => {
      // Spaces stay outside what is marked: they set the marks of neighbours apart.
      const [, before, rest] = /^(\s*)([^]*)$/.exec(token.text);
      const span = make('span', { class: 't', 'data-origin': token.origin }, before, make('u', { text: rest }));
      span.dataset.index = this.tokens.length;
      this.tokens.push({ token, round, at, span });
      this.ids.push(token.id);
      this.text += token.text;
      fragment.append(span);
    });
    this.shown = this.tokens.length;
    this.element.append(fragment);
  }

  /** Adds text that belongs to no token. */
  addText(text) {
    this.text += text;
    this.element.append(text);
  }

  /** Hides all but the first `count` tokens, which keep their places. */
  show(count) {
    const [from, to] = [Math.min(count, this.shown), Math.max(count, this.shown)];
    for (let i = from; i < to; ++i) this.tokens[i].span.classList.toggle('ahead', i >= count);
    this.shown = count;
  }

  /** Scrolls the element so that its last shown token is in view. */
  follow() {
    const last = this.tokens[this.shown - 1]?.span;
    if (!last || this.element.scrollHeight <= this.element.clientHeight) return;
    this.element.scrollTop = last.offsetTop + last.offsetHeight - this.element.clientHeight + 4;
  }

  /** Makes the tokens reachable by keyboard, or not. */
  setReachable(reachable) {
    if (reachable) {
      this.element.tabIndex = 0;
    } else {
      this.element.removeAttribute('tabindex');
      this.pick(-1);
    }
  }

  pick(index) {
    if (index === this.picked) return;
    this.tokens[this.picked]?.span.classList.remove('picked');
    this.picked = index;
    const entry = this.tokens[index];
    entry?.span.classList.add('picked');
    this.onPick(entry ?? null);
  }

  listen() {
    const indexOf = (event) => Number(event.target.closest('.t')?.dataset.index ?? -1);
    this.element.addEventListener('click', (event) => {
      if (this.element.tabIndex === 0) this.pick(indexOf(event));
    });
    this.element.addEventListener('keydown', (event) => {
      const last = this.tokens.length - 1;
      const targets = {
        ArrowRight: Math.min(this.picked + 1, last),
        ArrowLeft: Math.max(this.picked - 1, 0),
        Home: 0,
        End: last,
        Escape: -1,
      };
      if (!(event.key in targets) || this.element.tabIndex !== 0) return;
      event.preventDefault();
      this.pick(targets[event.key]);
      const entry = this.tokens[this.picked];
      if (entry) {
        entry.span.scrollIntoView({ block: 'nearest' });
        announce(describeToken(entry.token, entry.round, entry.at));
      }
    });
  }
}
