// Plots in plain HTML and SVG. Colours come from classes, so that they follow the theme.

import { make, number, svg } from './dom.js';

const WIDTH = 600;
const HEIGHT = 140;

/** A round number at or above `value`: 1, 2 or 5 times a power of ten. */
function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((nice) => nice >= value * 0.999);
}

/**
 * A line over time with its area, `slots` values wide, newest at the right edge; `label` reads it
 * out.
 */
export function linePlot(element, values, slots, label) {
  const top = niceCeiling(Math.max(1, ...values));
  const x = (i) => WIDTH - ((values.length - 1 - i) * WIDTH) / (slots - 1);
  const y = (value) => HEIGHT - (value / top) * (HEIGHT - 6);
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`);
  const drawing = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none',
                               role: 'img', 'aria-label': label });
  for (const share of [0.5, 1]) {
    drawing.append(svg('line', { class: 'grid', x1: 0, x2: WIDTH, y1: y(top * share), y2: y(top * share) }));
  }
  if (points.length > 1) {
    drawing.append(
      svg('polygon', { class: 'area', points: `${x(0)},${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}` }),
      svg('polyline', { class: 'line', points: points.join(' ') }));
  }
  element.replaceChildren(
    make('div', { class: 'line-plot' }, make('span', { class: 'scale', text: number(top) }), drawing),
    make('p', { class: 'ends' }, make('span', { text: `${slots} s ago` }), make('span', { text: 'now' })));
}

/** Rows of `{name, share, text, kind}`: bars from 0 to 1, each with its value beside it. */
export function barPlot(element, rows, empty) {
  if (rows.length === 0) {
    element.replaceChildren(make('p', { class: 'hint', text: empty }));
    return;
  }
  element.replaceChildren(make('ol', { class: 'bars' }, ...rows.map((row) => {
    const fill = make('i', { 'data-kind': row.kind });
    fill.style.width = `${100 * Math.min(1, row.share)}%`;
    return make('li', {}, make('span', { class: 'name', text: row.name }),
                make('span', { class: 'track' }, fill), make('span', { class: 'value', text: row.text }));
  })));
}

/** One bar that is divided into `{name, value, text, kind}`, with its legend. */
export function splitPlot(element, parts, empty) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  if (!(total > 0)) {
    element.replaceChildren(make('p', { class: 'hint', text: empty }));
    return;
  }
  element.replaceChildren(
    make('div', { class: 'split', 'aria-hidden': 'true' }, ...parts.map((part) => {
      const fill = make('i', { 'data-kind': part.kind });
      fill.style.flexGrow = String(part.value / total);
      return fill;
    })),
    make('ul', { class: 'parts' }, ...parts.map((part) =>
      make('li', {}, make('i', { 'data-kind': part.kind, 'aria-hidden': 'true' }),
           make('span', { text: part.name }), make('b', { text: part.text })))));
}
