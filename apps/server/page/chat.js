// The chat: a conversation whose answers can show how their tokens came.

import { ApiError, generate } from './api.js';
import { announce, byId, make, number, percent, plural } from './dom.js';
import { RoundStrip } from './rounds.js';
import { openSettings, requestOptions, withSystem } from './settings.js';
import { TokenText, describeToken } from './tokens.js';

const ORIGINS_STORE = 'foretoken.origins';
const STARTERS = [
  'Tell me a story about a dragon.',
  'Tell me a story about a boy who finds a key.',
  'Tell me a story about a rainy day.',
];

/** One answer as it stands in the transcript. */
class Answer {
  constructor(strip) {
    this.strip = strip;
    this.body = make('div', { class: 'text', 'aria-label': 'Answer; arrow keys step through its tokens',
                              role: 'group' });
    this.note = make('p', { class: 'note', hidden: true });
    this.foot = make('p', { class: 'foot' });
    this.element = make('article', { class: 'answer', 'aria-busy': 'true' }, this.body, this.note, this.foot);
    this.tokens = new TokenText(this.body, (entry) => this.look(entry));
    this.waiting = [];
    this.frame = 0;
  }

  look(entry) {
    this.note.hidden = !entry;
    if (!entry) return;
    this.note.textContent = describeToken(entry.token, entry.round, entry.at);
    this.strip.pickNumber(entry.round);
  }

  /** Rounds come faster than frames; they are drawn once a frame. */
  addRound(round) {
    this.waiting.push(round);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const rounds = this.waiting.splice(0);
    if (rounds.length === 0) return;
    for (const round of rounds) this.tokens.addRound(round);
    this.strip.add(rounds);
    this.onDraw?.();
  }

  end(summary) {
    this.draw();
    this.element.setAttribute('aria-busy', 'false');
    this.foot.textContent = summary;
  }
}

/** "128 tokens, 2.91 a round, 84 % of lookups hit, 213 tokens/s" */
function summarise(usage, timings) {
  if (!usage) return '';
  const parts = [plural(usage.completion_tokens, 'token')];
  if (usage.mode) parts.unshift(usage.mode.toUpperCase());
  if (usage.rounds > 0) parts.push(`${number(usage.completion_tokens / usage.rounds)} a round`);
  if (usage.draft_n > 0) parts.push(`${percent(usage.draft_n_accepted, usage.draft_n)} of drafts accepted`);
  if (typeof usage.hit_rate === 'number') parts.push(`${percent(usage.hit_rate, 1)} cache hits`);
  if (timings?.predicted_per_second > 0) parts.push(`${number(timings.predicted_per_second)} tokens/s`);
  return parts.join(' · ');
}

export class Chat {
  constructor() {
    this.messages = [];
    this.answers = [];
    this.abort = null;
    this.strip = new RoundStrip(byId('strip'), byId('round'), byId('figures'));
    this.transcript = byId('transcript');
    this.prompt = byId('prompt');
    this.atEnd = true;
    this.transcript.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.transcript;
      this.atEnd = scrollHeight - scrollTop - clientHeight < 40;
    });
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.abort) this.abort.abort();
      else this.send(this.prompt.value.trim());
    });
    this.prompt.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.abort) this.send(this.prompt.value.trim());
    });
    this.prompt.addEventListener('input', () => this.fitPrompt());
    byId('clear').addEventListener('click', () => this.clear());
    byId('origins').addEventListener('click', () => this.showOrigins(!this.origins));
    byId('starters').append(...STARTERS.map((text) => {
      const button = make('button', { class: 'quiet', type: 'button', text });
      button.addEventListener('click', () => this.send(text));
      return make('li', {}, button);
    }));
    this.showOrigins(localStorage.getItem(ORIGINS_STORE) === 'yes');
  }

  fitPrompt() {
    this.prompt.style.height = 'auto';
    this.prompt.style.height = `${this.prompt.scrollHeight + 2}px`;
  }

  showOrigins(shown) {
    this.origins = shown;
    localStorage.setItem(ORIGINS_STORE, shown ? 'yes' : 'no');
    byId('origins').setAttribute('aria-pressed', String(shown));
    byId('legend').hidden = !shown;
    this.transcript.classList.toggle('origins', shown);
    for (const answer of this.answers) answer.tokens.setReachable(shown);
  }

  clear() {
    this.abort?.abort();
    this.messages = [];
    this.answers = [];
    this.transcript.replaceChildren();
    this.strip.clear();
    this.setEmpty(true);
    this.prompt.focus();
  }

  setEmpty(empty) {
    byId('empty').hidden = !empty;
    byId('clear').hidden = empty;
  }

  setBusy(busy) {
    const send = byId('send');
    send.textContent = busy ? 'Stop' : 'Send';
    send.classList.toggle('stop', busy);
  }

  /** Keeps the end in view while the reader is there. */
  follow() {
    if (this.atEnd) this.transcript.scrollTop = this.transcript.scrollHeight;
  }

  async send(text) {
    if (text === '' || this.abort) return;
    this.prompt.value = '';
    this.fitPrompt();
    this.setEmpty(false);
    this.messages.push({ role: 'user', content: text });
    const answer = new Answer(this.strip);
    answer.tokens.setReachable(this.origins);
    this.answers.push(answer);
    this.transcript.append(make('article', { class: 'question' }, make('p', { text })), answer.element);
    this.atEnd = true;
    this.follow();
    answer.onDraw = () => this.follow();
    this.strip.clear();
    await this.receive(answer);
  }

  async receive(answer) {
    const abort = new AbortController();
    this.abort = abort;
    this.setBusy(true);
    announce('Answering');
    try {
      const messages = withSystem(this.messages);
      let end = {};
      for await (const part of generate(messages, requestOptions(), abort.signal)) {
        if (part.round) answer.addRound(part.round);
        else if (part.text) answer.tokens.addText(part.text);
        else end = part;
      }
      answer.end(summarise(end.usage, end.timings));
      announce(`Answer complete: ${answer.tokens.text}`);
    } catch (error) {
      this.fail(answer, error);
    }
    this.follow();
    if (this.abort !== abort) return; // Another conversation has begun.
    // A question that got no answer is not part of the conversation.
    if (answer.tokens.text === '') this.messages.pop();
    else this.messages.push({ role: 'assistant', content: answer.tokens.text });
    this.abort = null;
    this.setBusy(false);
  }

  fail(answer, error) {
    if (error.name === 'AbortError') {
      answer.end('Stopped');
      announce('Stopped');
      return;
    }
    if (!(error instanceof ApiError)) console.error(error);
    answer.end('');
    const box = make('p', { class: 'error', role: 'alert', text: error.message });
    if (error.status === 401) {
      const button = make('button', { class: 'quiet', type: 'button', text: 'Enter an API key' });
      button.addEventListener('click', openSettings);
      box.append(' ', button);
    }
    answer.foot.replaceWith(box);
  }
}
