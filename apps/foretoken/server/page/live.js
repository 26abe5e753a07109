// What the whole server is doing: /stats, once a second while somebody looks.

import { getModelJson } from './api.js';
import { byId, count, duration, make, number, percent } from './dom.js';
import { barPlot, linePlot, splitPlot } from './plot.js';

const PERIOD_MS = 1000;
const SLOTS = 60;

/** The round's parts, their keys in /stats and what they are. */
const ROUND_PARTS = [
  ['target', 'target_s', 'Target pass'],
  ['wait', 'wait_s', 'Waiting for a proposal'],
  ['host', 'host_s', 'Everything else'],
];
const ORIGINS = [
  ['accepted', 'Accepted from the draft'],
  ['fallback', 'Accepted from a fallback'],
  ['bonus', 'The target’s own'],
];

function tiles(stats) {
  return [
    ['tokens/s', number(stats.tokens_per_second)],
    ['running', count(stats.running)],
    ['waiting', count(stats.waiting)],
    ['KV in use', percent(stats.kv.used, stats.kv.total)],
    ['tokens a round', stats.acceptance.length > 0 ? number(stats.acceptance.length) : '–'],
    ['drafts accepted', percent(stats.acceptance.accepted_tokens, stats.acceptance.draft_tokens)],
    ['cache hits', stats.hits.lookups > 0 ? percent(stats.hits.rate, 1) : '–'],
  ];
}

export class Live {
  constructor() {
    this.speeds = [];
    this.timer = 0;
    this.shown = false;
  }

  /** Begins or ends to ask the server. */
  setShown(shown) {
    if (shown === this.shown) return;
    this.shown = shown;
    clearTimeout(this.timer);
    if (shown) this.poll();
  }

  async poll() {
    try {
      this.draw(await getModelJson('/stats'));
      byId('live-hint').textContent =
        'Speed over the last seconds; all else since the model was loaded.';
    } catch (error) {
      byId('live-hint').textContent = error.message;
    }
    clearTimeout(this.timer);
    if (this.shown) this.timer = setTimeout(() => this.poll(), PERIOD_MS);
  }

  draw(stats) {
    this.speeds = [...this.speeds, stats.tokens_per_second].slice(-SLOTS);
    byId('tiles').replaceChildren(...tiles(stats).map(([name, value]) =>
      make('div', {}, make('dt', { text: name }), make('dd', { text: value }))));
    linePlot(byId('plot-speed'), this.speeds, SLOTS,
             `Tokens per second over the last minute, now ${number(stats.tokens_per_second)}`);
    barPlot(byId('plot-acceptance'), stats.acceptance.by_position.map((share, i) => ({
      name: String(i + 1), share, text: percent(share, 1), kind: 'accepted',
    })), 'Nothing was drafted yet.');
    barPlot(byId('plot-hits'), stats.hits.by_position.map((at) => ({
      name: String(at.position), share: at.rate, text: percent(at.rate, 1), kind: 'accepted',
    })), 'No lookups yet: only mode ssd has a speculation cache.');
    this.drawShares(stats);
  }

  drawShares(stats) {
    const rounds = Object.values(stats.modes).reduce((sum, mode) => sum + mode.rounds, 0);
    splitPlot(byId('plot-time'), ROUND_PARTS.map(([kind, key, name]) => ({
      kind, name, value: stats.round_time[key],
      text: rounds > 0 ? duration((1000 * stats.round_time[key]) / rounds) : '',
    })), 'No rounds yet.');
    splitPlot(byId('plot-origins'), ORIGINS.map(([kind, name]) => ({
      kind, name, value: stats.tokens_by_origin[kind], text: count(stats.tokens_by_origin[kind]),
    })), 'No tokens yet.');
    const modes = Object.entries(stats.modes);
    const most = Math.max(1, ...modes.map(([, mode]) => mode.tokens));
    barPlot(byId('plot-modes'), modes.map(([name, mode]) => ({
      name: name.toUpperCase(), share: mode.tokens / most, text: count(mode.tokens), kind: 'neutral',
    })), 'No modes.');
  }
}
