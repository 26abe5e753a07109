// One answer of a conversation: formatted, or token by token with how each of them came.

import { copyButton, drawnButton } from '../buttons.js';
import { make, number, percent, plural } from '../dom.js';
import { MarkdownView } from '../markdown/markdown.js';
import { TokenText, describeToken } from '../tokens.js';

const REST = 4; // Formatting takes at most one part of time in so many and one.

/** "SSD · 128 tokens · 2.91 a round · 84 % of drafts accepted · 213 tokens/s · seed 7" */
export function summarise({ usage, timings, finish }, seed) {
  if (!usage) return '';
  const parts = [plural(usage.completion_tokens, 'token')];
  if (usage.mode) parts.unshift(usage.mode.toUpperCase());
  if (usage.rounds > 0) parts.push(`${number(usage.completion_tokens / usage.rounds)} a round`);
  if (usage.draft_n > 0) parts.push(`${percent(usage.draft_n_accepted, usage.draft_n)} of drafts accepted`);
  if (usage.lossy) parts.push(`LOSSY (${usage.lossy}): ${plural(usage.lossy_n, 'token')} not the model’s own`);
  if (typeof usage.hit_rate === 'number') parts.push(`${percent(usage.hit_rate, 1)} cache hits`);
  if (timings?.predicted_per_second > 0) parts.push(`${number(timings.predicted_per_second)} tokens/s`);
  parts.push(`seed ${seed}`);
  if (finish === 'length') parts.push('cut at the length limit');
  return parts.join(' · ');
}

export class Answer {
  /** `onRounds(rounds)` hears of what is drawn, `onPick(round)` of a round that is picked. */
  constructor({ onRounds, onPick, onAgain }) {
    Object.assign(this, { onRounds, onPick });
    this.formatted = make('div', { class: 'formatted' });
    this.body = make('div', { class: 'text', role: 'group',
                              'aria-label': 'Answer; arrow keys step through its tokens' });
    this.note = make('p', { class: 'note', hidden: true });
    this.foot = make('p', { class: 'foot' });
    this.actions = make('div', { class: 'actions' },
      copyButton('Copy answer', () => this.text),
      drawnButton('again', 'Answer again', onAgain));
    this.actions.lastChild.classList.add('again');
    this.element = make('article', { class: 'answer', 'aria-busy': 'true', 'aria-label': 'Answer' },
                        this.formatted, this.body, this.note,
                        make('div', { class: 'below' }, this.actions, this.foot));
    this.tokens = new TokenText(this.body, (entry) => this.look(entry));
    this.markdown = new MarkdownView(this.formatted);
    this.rounds = [];
    this.waiting = []; // Rounds that are not drawn yet.
    this.frame = 0;
    this.timer = 0;
    this.nextFormat = 0; // Not before this time.
  }

  get text() {
    return this.tokens.text;
  }

  look(entry) {
    this.note.hidden = !entry;
    if (!entry) return;
    this.note.textContent = describeToken(entry.token, entry.round, entry.at);
    this.onPick(entry.round);
  }

  /** Rounds come faster than frames; they are drawn once a frame. */
  addRound(round) {
    this.waiting.push(round);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  /** Adds text that belongs to no token. */
  addText(text) {
    this.drawTokens();
    this.tokens.addText(text);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawTokens();
    this.timer ||= setTimeout(() => this.format(), Math.max(0, this.nextFormat - performance.now()));
  }

  drawTokens() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const rounds = this.waiting.splice(0);
    if (rounds.length === 0) return;
    for (const round of rounds) this.tokens.addRound(round);
    this.rounds.push(...rounds);
    this.onRounds(rounds);
  }

  // A long last paragraph is made anew each time, so that there has to be a pause in between.
  format() {
    clearTimeout(this.timer);
    this.timer = 0;
    const begin = performance.now();
    this.markdown.show(this.text);
    const end = performance.now();
    this.nextFormat = end + REST * (end - begin);
    this.onRounds([]);
  }

  /** Nothing more comes. */
  end(foot) {
    this.drawTokens();
    this.format();
    this.element.setAttribute('aria-busy', 'false');
    this.element.classList.toggle('void', this.text === '');
    this.foot.textContent = foot;
  }

  /** Says what went wrong, with `more` after it. */
  showError(message, more = null) {
    this.element.querySelector('.error')?.remove();
    this.note.after(make('p', { class: 'error', role: 'alert' }, message, more && ' ', more));
  }
}
