// One prompt in several modes: decoded one after the other, then shown side by side.

import { ApiError, generate } from './api.js';
import { byId, calm, make, number, plural } from './dom.js';
import { MODE_NAMES, chooseSeed, requestOptions, withSystem } from './settings.js';
import { TokenText } from './tokens.js';

const FIRST_CHOICE = ['ar', 'sd', 'ssd', 'sd2', 'sd3'];
const REPLAY_MS = 6000; // How long the slowest lane is shown when it took less.

/** A mode's run and how it is drawn. */
class Lane {
  /** `draft` is what drafts in it, where a model does. */
  constructor(mode, limit, draft) {
    this.mode = mode;
    this.limit = limit;
    this.times = []; // After which milliseconds of decoding so many tokens were there.
    this.speed = NaN;
    this.state = make('p', { class: 'state', text: 'waiting' });
    this.value = make('span', { text: '–' });
    this.ratio = make('span', { class: 'ratio' });
    this.bar = make('i');
    this.place = make('span', { class: 'place' });
    const body = make('div', { class: 'text origins', tabindex: '0', role: 'group',
                               'aria-label': `Output of ${mode.toUpperCase()}` });
    this.tokens = new TokenText(body);
    const how = [MODE_NAMES[mode], draft].filter(Boolean).join(', ');
    this.element = make('article', { class: 'lane', 'data-mode': mode },
      make('header', {},
           make('h3', {}, mode.toUpperCase(), this.place, make('small', { text: how })),
           make('p', { class: 'speed' }, this.value, make('small', { text: ' tokens/s' }), this.ratio)),
      make('div', { class: 'track', 'aria-hidden': 'true' }, this.bar), this.state, body);
  }

  get total() {
    return this.tokens.tokens.length;
  }
  get decodeMs() {
    return this.times.at(-1)?.ms ?? 0;
  }

  async run(messages, options, signal) {
    this.state.textContent = 'decoding';
    for await (const part of generate(messages, options, signal)) {
      if (part.round) this.addRound(part.round);
      else if (part.text) this.tokens.addText(part.text);
      else this.finish(part.timings);
    }
  }

  addRound(round) {
    // The first round came with the prompt's pass, which every mode pays alike.
    const ms = this.times.length === 0 ? 0 : this.decodeMs + round.ms;
    this.tokens.addRound(round);
    this.times.push({ ms, tokens: this.total });
    this.fill(this.total);
  }

  finish(timings) {
    // The server's total is what counts; rounds only say how it was spread.
    const scale = timings?.predicted_ms > 0 && this.decodeMs > 0 ? timings.predicted_ms / this.decodeMs : 1;
    for (const time of this.times) time.ms *= scale;
    this.speed = this.decodeMs > 0 ? ((this.total - 1) * 1000) / this.decodeMs : NaN;
    this.value.textContent = number(this.speed);
    this.state.textContent = this.summary();
  }

  summary() {
    return `${plural(this.total, 'token')} in ${plural(this.times.length, 'round')}, ${number(this.decodeMs)} ms`;
  }

  fill(tokens) {
    this.bar.style.width = `${Math.min(100, (100 * tokens) / this.limit)}%`;
  }

  /** Shows the lane as it was after `ms` of decoding. */
  showAt(ms) {
    let tokens = 0;
    for (const time of this.times) {
      if (time.ms > ms) break;
      tokens = time.tokens;
    }
    this.tokens.show(tokens);
    this.tokens.follow();
    this.fill(tokens);
    const done = ms >= this.decodeMs;
    this.state.textContent = done ? this.summary() : plural(tokens, 'token');
    this.element.classList.toggle('done', done);
    return done;
  }
}

/** Whether all lanes have the same tokens, in a sentence. */
function compare(lanes) {
  const reference = lanes.find((lane) => lane.mode === 'ar') ?? lanes[0];
  for (const lane of lanes) {
    const length = Math.max(reference.total, lane.total);
    for (let i = 0; i < length; ++i) {
      if (reference.tokens.ids[i] !== lane.tokens.ids[i]) {
        return { same: false, text: `Different: ${lane.mode.toUpperCase()} departs from ` +
                                    `${reference.mode.toUpperCase()} at token ${i + 1}.` };
      }
    }
    if (lane.tokens.text !== reference.tokens.text) {
      return { same: false, text: `Different: ${lane.mode.toUpperCase()} gave another text than ` +
                                  `${reference.mode.toUpperCase()}.` };
    }
  }
  const number_words = ['', '', 'both', 'all three', 'all four', 'all five'][lanes.length] ?? `all ${lanes.length}`;
  return { same: true, text: `Identical: ${number_words} gave the same ${plural(reference.total, 'token')}.` };
}

export class Race {
  /** `settings()` gives those that hold for every lane. */
  constructor(settings) {
    this.settings = settings;
    this.context = 0;
    this.drafts = {}; // By mode.
    this.lanes = [];
    this.abort = null;
    byId('race-form').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.abort) this.abort.abort();
      else this.run();
    });
    byId('replay-again').addEventListener('click', () => this.replay());
  }

  /** Offers what the server has. */
  offer({ modes, context, drafts }) {
    this.context = context;
    this.drafts = drafts ?? {};
    byId('race-modes').replaceChildren(byId('race-modes').firstElementChild, ...modes.map((mode) =>
      make('label', {},
           make('input', { type: 'checkbox', name: 'mode', value: mode, checked: FIRST_CHOICE.includes(mode) }),
           make('span', { text: mode.toUpperCase(), title: MODE_NAMES[mode] ?? '' }))));
  }

  say(text, kind = '') {
    const verdict = byId('verdict');
    verdict.textContent = text;
    verdict.className = `verdict ${kind}`;
  }

  async run() {
    const modes = [...byId('race-form').querySelectorAll('input:checked')].map((box) => box.value);
    if (modes.length < 2) {
      this.say('Choose two modes or more.', 'bad');
      return;
    }
    this.stopReplay();
    byId('replay').hidden = true;
    const settings = this.settings();
    const seed = chooseSeed(settings); // The same for all.
    const messages = withSystem(settings, [{ role: 'user', content: byId('race-prompt').value.trim() }]);
    const limit = Number(settings.max_tokens) || this.context;
    this.lanes = modes.map((mode) => new Lane(mode, limit, this.drafts[mode]));
    byId('lanes').replaceChildren(...this.lanes.map((lane) => lane.element));
    byId('verdict').scrollIntoView({ block: 'start', behavior: calm() ? 'auto' : 'smooth' });
    this.abort = new AbortController();
    byId('race-start').textContent = 'Stop';
    try {
      for (const lane of this.lanes) {
        this.say(`${lane.mode.toUpperCase()} decodes alone …`);
        await lane.run(messages, requestOptions(settings, seed, lane.mode), this.abort.signal);
      }
      this.conclude();
    } catch (error) {
      if (!(error instanceof ApiError) && error.name !== 'AbortError') console.error(error);
      this.say(error.name === 'AbortError' ? 'Stopped.' : error.message, 'bad');
    }
    this.abort = null;
    byId('race-start').textContent = 'Race';
  }

  conclude() {
    const { same, text } = compare(this.lanes);
    this.say(text, same ? 'good' : 'bad');
    const ar = this.lanes.find((lane) => lane.mode === 'ar');
    const order = [...this.lanes].sort((a, b) => a.decodeMs - b.decodeMs);
    for (const lane of this.lanes) {
      lane.limit = Math.max(...this.lanes.map((other) => other.total));
      lane.fill(lane.total);
      if (ar && lane !== ar && ar.speed > 0) lane.ratio.textContent = `${number(lane.speed / ar.speed)} × AR`;
      const rank = order.indexOf(lane) + 1;
      lane.place.textContent = `${rank}`;
      lane.place.setAttribute('aria-label', `, place ${rank}`);
    }
    byId('replay').hidden = false;
    const slowest = order.at(-1).decodeMs;
    this.slowdown = Math.max(1, REPLAY_MS / slowest);
    byId('replay-text').textContent = this.slowdown > 1.05
      ? `Shown ${number(this.slowdown)} times slower than it was.` : 'Shown as fast as it was.';
    if (calm()) this.stopReplay();
    else this.replay();
  }

  /** Shows the end, read from the top. */
  stopReplay() {
    cancelAnimationFrame(this.frame);
    for (const lane of this.lanes) {
      lane.showAt(Infinity);
      lane.tokens.element.scrollTop = 0;
    }
  }

  replay() {
    this.stopReplay();
    const begin = performance.now();
    const step = (now) => {
      const ms = Math.max(0, now - begin) / this.slowdown;
      const done = this.lanes.map((lane) => lane.showAt(ms));
      if (done.every(Boolean)) this.stopReplay();
      else this.frame = requestAnimationFrame(step);
    };
    step(begin);
  }
}
