// The live strip of rounds: one column each, with the round that is looked at spelled out below.

import { duration, make, percent, number, plural, visible } from '../dom.js';
import { describeSource } from '../tokens.js';

const KEPT = 160; // Columns; older ones leave the strip.
const CELLS = 12; // Proposal tokens drawn in a column.

const hitName = (hit) => (hit === true ? 'hit' : hit === false ? 'miss' : 'none');
// Whether the round's outcome was prepared for: what proposes the next round.
const HIT_WORDS = { hit: 'cache hit', miss: 'cache miss', none: 'no lookup' };

function describe(round) {
  return `Round ${round.round}: ${round.accepted} of ` +
    `${plural(round.proposed.length, 'proposed token')} accepted, then ${HIT_WORDS[hitName(round.hit)]}, ` +
    duration(round.ms);
}

/** The proposed texts that were not accepted, as far as the server tells them. Of a tree, the accepted path is
 *  anywhere among them. */
function rejectedTexts(round) {
  const rest = [...round.proposed];
  for (const token of round.tokens) {
    if (token.origin === 'bonus') continue;
    rest.splice(Math.max(0, rest.indexOf(token.text)), 1);
  }
  return rest.filter((text) => text !== null);
}

// From the bottom: what was emitted, then what was guessed in vain.
function column(round) {
  const cells = make('span', { class: 'cells' });
  for (const token of round.tokens.slice(-CELLS)) cells.append(make('i', { 'data-origin': token.origin }));
  const wasted = Math.min(round.proposed.length - round.accepted, CELLS - cells.children.length);
  for (let i = 0; i < wasted; ++i) cells.append(make('i', { class: 'rejected' }));
  return make('div', { class: 'column', role: 'option', 'aria-label': describe(round),
                       'aria-selected': 'false' },
              cells, make('b', { class: hitName(round.hit) }));
}

/** Counts over the rounds of an answer. */
export class RoundTotals {
  constructor() {
    Object.assign(this, { rounds: 0, tokens: 0, proposed: 0, accepted: 0, lookups: 0, hits: 0, ms: 0 });
  }
  add(round) {
    this.rounds += 1;
    this.tokens += round.tokens.length;
    this.proposed += round.proposed.length;
    this.accepted += round.accepted;
    if (round.hit !== null && round.hit !== undefined) this.lookups += 1;
    if (round.hit === true) this.hits += 1;
    if (this.rounds > 1) this.ms += round.ms; // The first holds the prompt's time.
  }
  /** Tokens after the first, per second after the first, by the server's clock. */
  get speed() {
    return this.ms > 0 ? ((this.tokens - 1) * 1000) / this.ms : NaN;
  }
  /** Name and value of each figure. */
  figures() {
    return [
      ['tokens/s', number(this.speed)],
      ['a round', this.rounds > 0 ? number(this.tokens / this.rounds) : '–'],
      ['accepted', percent(this.accepted, this.proposed)],
      ['cache hits', percent(this.hits, this.lookups)],
    ];
  }
}

/** A strip of rounds in `strip`, the picked one in `detail`, figures in `figures`. */
export class RoundStrip {
  constructor(strip, detail, figures) {
    Object.assign(this, { strip, detail, figures });
    strip.addEventListener('click', (event) => {
      const index = [...strip.children].indexOf(event.target.closest('.column'));
      if (index >= 0) this.pick(index, true);
    });
    strip.addEventListener('keydown', (event) => this.onKey(event));
    this.clear();
  }

  clear() {
    this.rounds = [];
    this.totals = new RoundTotals();
    this.picked = -1;
    this.held = false; // Whether the reader chose a round; otherwise the latest is shown.
    this.strip.replaceChildren();
    this.setEmpty(true);
    this.strip.removeAttribute('aria-activedescendant');
    this.detail.replaceChildren();
    this.showFigures();
  }

  setEmpty(empty) {
    this.strip.closest('.rounds').classList.toggle('none-yet', empty);
  }

  /** Adds rounds in order; draws once for all of them. */
  add(rounds) {
    this.setEmpty(false);
    for (const round of rounds) this.totals.add(round);
    this.rounds.push(...rounds);
    this.strip.append(...rounds.slice(-KEPT).map(column));
    const surplus = this.rounds.length - KEPT;
    if (surplus > 0) {
      this.rounds.splice(0, surplus);
      while (this.strip.children.length > KEPT) this.strip.firstChild.remove();
      if (this.picked >= 0) this.picked -= surplus;
      if (this.picked < 0) this.held = false;
    }
    if (!this.held) {
      this.pick(this.rounds.length - 1, false);
      this.strip.scrollLeft = this.strip.scrollWidth;
    }
    this.showFigures();
  }

  /** Looks at the round with this number, where it is still there. */
  pickNumber(round) {
    const index = this.rounds.indexOf(round);
    if (index >= 0) this.pick(index, true);
    else this.spellOut(round);
  }

  pick(index, held) {
    this.held = held;
    const before = this.strip.querySelector('[aria-selected="true"]');
    if (before) {
      before.setAttribute('aria-selected', 'false');
      before.removeAttribute('id');
    }
    this.picked = index;
    const element = this.strip.children[index];
    element.setAttribute('aria-selected', 'true');
    element.id = 'picked-round';
    this.strip.setAttribute('aria-activedescendant', 'picked-round');
    if (held) element.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    this.spellOut(this.rounds[index]);
  }

  onKey(event) {
    const last = this.rounds.length - 1;
    const targets = { ArrowLeft: this.picked - 1, ArrowRight: this.picked + 1, Home: 0, End: last };
    if (!(event.key in targets) || last < 0) return;
    event.preventDefault();
    this.pick(Math.max(0, Math.min(targets[event.key], last)), true);
  }

  spellOut(round) {
    const hit = hitName(round.hit);
    const chips = make('p', { class: 'chips' });
    const add = (text, attributes) => chips.append(make('span', { text: visible(text), ...attributes }));
    for (const token of round.tokens) add(token.text, { class: 'chip', 'data-origin': token.origin });
    for (const text of rejectedTexts(round)) add(text, { class: 'chip rejected' });
    const source = describeSource(round);
    this.detail.replaceChildren(
      make('h3', {}, `Round ${round.round}`, make('span', { class: 'outcome' }, make('b', { class: hit }), HIT_WORDS[hit])),
      chips,
      make('p', { class: 'hint' },
           `${source[0].toUpperCase()}${source.slice(1)}; ${round.accepted} of ` +
           `${round.proposed.length} accepted; ${duration(round.ms)}.`));
  }

  showFigures() {
    this.figures.replaceChildren(...this.totals.figures().map(([name, value]) =>
      make('div', {}, make('dt', { text: name }), make('dd', { text: value }))));
  }
}
