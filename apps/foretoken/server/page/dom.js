// Small helpers around the DOM and numbers.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element. `attributes` are set as such, except `class` and `text`; `children` are nodes or
 * strings, and falsy ones are left out.
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name === 'text') element.textContent = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A new element of a drawing. */
export function svg(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Says something to screen readers. */
export function announce(text) {
  byId('announce').textContent = text;
}

/** "84 %", or a dash where there is nothing to divide by. */
export function percent(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : '–';
}

/** About three digits: "0.42", "7.31", "64.2", "1,234". */
export function number(value) {
  if (!Number.isFinite(value)) return '–';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A count with thousands set apart. */
export const count = (value) => (Number.isFinite(value) ? value.toLocaleString('en') : '–');

/** "1 token", "2 tokens". */
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? '' : 's'}`;

/** "840 µs", "1.20 ms", "3.40 s". */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  return ms < 1000 ? `${number(ms)} ms` : `${number(ms / 1000)} s`;
}

/** A token's text as it can be seen: spaces and line ends made visible where nothing else is. */
export function visible(text) {
  if (text === '') return '∅';
  return text.replaceAll('\n', '↵').replaceAll('\t', '⇥').replace(/^ +| +$/g, (s) => '·'.repeat(s.length));
}

/** Whether the reader asked for little motion. */
export const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
