// What stands inside a paragraph: emphasis, code, links. Gives DOM nodes that are made one by one
// and get their text as text, so that nothing a model writes is ever read as HTML. Takes time linear
// in the text whatever it holds.

import { make } from '../dom.js';

const MAX_DEPTH = 12; // Emphasis in emphasis; what is deeper has no more effect.
const SPECIAL = /[\\`*_~[\]!<&]|\bhttps?:\/\//g;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: '’', nbsp: '\u00a0', hellip: '…',
                   ndash: '–', mdash: '—', copy: '©', times: '×', rarr: '→', le: '≤', ge: '≥' };

/** The address as a link may have it, or null: only the web and mail, and only in full. */
export function safeAddress(text) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}

function link(address, ...children) {
  return make('a', { href: address, title: address, target: '_blank', rel: 'noopener noreferrer' },
              ...children);
}

/** Whether a run of marks between these two characters may open or close emphasis. */
function sidesOf(mark, before, after) {
  const space = (character) => character === '' || /\s/u.test(character);
  const point = (character) => character !== '' && /[\p{P}\p{S}]/u.test(character);
  const left = !space(after) && (!point(after) || space(before) || point(before));
  const right = !space(before) && (!point(before) || space(after) || point(after));
  if (mark !== '_') return { opens: left, closes: right };
  return { opens: left && (!right || point(before)), closes: right && (!left || point(after)) };
}

/**
 * Pairs the runs of marks in `pieces`. Each run gets how many marks of it are left, and the lengths
 * that it closes (innermost first) and opens (innermost first).
 */
function pairMarks(pieces) {
  const open = { '*': [], '_': [], '~': [] };
  const fits = (opener, run) => run.mark === '~' || !((opener.closes || run.opens) &&
    (opener.length + run.length) % 3 === 0 && (opener.length % 3 !== 0 || run.length % 3 !== 0));
  pieces.forEach((run, at) => {
    if (!run.mark) return;
    const own = open[run.mark];
    while (run.closes && run.left > 0 && own.length > 0) {
      const begin = own.at(-1);
      const opener = pieces[begin];
      if (!fits(opener, run)) break;
      const used = Math.min(2, opener.left, run.left);
      opener.begins.push(used);
      run.ends.push(used);
      opener.left -= used;
      run.left -= used;
      // What was opened in between cannot close any more.
      for (const others of Object.values(open)) while (others.at(-1) > begin) others.pop();
      if (opener.left === 0) own.pop();
    }
    if (run.opens && run.left > 0) own.push(at);
  });
}

/** A fragment of the pieces, with what they emphasise. */
function assemble(pieces) {
  pairMarks(pieces);
  const fragment = document.createDocumentFragment();
  const stack = [fragment];
  let text = ''; // Not in the fragment yet: what is one text becomes one node.
  const append = (node) => {
    if (text !== '') stack.at(-1).append(text);
    text = '';
    if (node) stack.at(-1).append(node);
  };
  for (const piece of pieces) {
    if (piece.node) append(piece.node);
    if (!piece.mark) {
      text += piece.text ?? '';
      continue;
    }
    for (let i = 0; i < piece.ends.length; ++i) {
      append();
      stack.pop();
    }
    text += piece.mark.repeat(piece.left);
    for (const used of piece.begins.toReversed()) {
      const deep = stack.length > MAX_DEPTH;
      const inner = deep ? stack.at(-1) : make(piece.mark === '~' ? 'del' : used === 2 ? 'strong' : 'em');
      append(deep ? null : inner);
      stack.push(inner);
    }
  }
  append();
  return fragment;
}

/** Where a link leads whose `(` ends before `at`: `{address, end}`, or null where there is no link. */
function targetAt(text, at) {
  const space = /\s*/y;
  space.lastIndex = at;
  space.exec(text);
  let begin = space.lastIndex;
  let end = begin;
  let after = begin;
  if (text[begin] === '<') {
    const pointed = /<([^<>\n]*)>/y;
    pointed.lastIndex = begin;
    if (!pointed.exec(text)) return null;
    begin += 1;
    end = pointed.lastIndex - 1;
    after = pointed.lastIndex;
  } else {
    let depth = 0; // Open parentheses; as many as 32, as in CommonMark.
    for (; end < text.length && !/[\s<]/.test(text[end]); ++end) {
      if (text[end] === '\\') end += 1;
      else if (text[end] === '(' && ++depth > 32) return null;
      else if (text[end] === ')' && --depth < 0) break;
    }
    if (depth > 0) return null;
    after = end;
  }
  const title = /(?:\s+(?:"[^"]{0,300}"|'[^']{0,300}'))?\s*\)/y;
  title.lastIndex = after;
  if (!title.exec(text)) return null;
  return { address: text.slice(begin, end).replace(/\\([!-/:-@[-`{-~])/g, '$1'), end: title.lastIndex };
}

/** Splits a text into pieces: `{text}`, `{node}` or a run of marks. */
class Scanner {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.pieces = [];
    this.brackets = []; // {piece, image}: those that may still begin a link.
    this.nextTicks = new Map(); // From a run of backticks to the next one as long.
    const last = new Map();
    for (const run of [...text.matchAll(/`+/g)].reverse()) {
      const length = run[0].length;
      if (last.has(length)) this.nextTicks.set(run.index, last.get(length));
      last.set(length, run.index);
    }
  }

  add(text, end) {
    this.pieces.push({ text });
    this.at = end;
  }

  /** Adds what `pattern` finds here, as `read` makes it: `{text}` or `{node}`, or null for nothing. */
  match(pattern, read) {
    const sticky = new RegExp(pattern, 'y');
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text);
    const piece = found && read(found);
    if (!piece) return false;
    this.pieces.push(piece);
    this.at = sticky.lastIndex;
    return true;
  }

  scan() {
    const special = new RegExp(SPECIAL);
    while (this.at < this.text.length) {
      special.lastIndex = this.at;
      const found = special.exec(this.text);
      const next = found ? found.index : this.text.length;
      if (next > this.at) this.add(this.text.slice(this.at, next), next);
      if (found) this.readSpecial(found[0]);
    }
    return this.pieces;
  }

  readSpecial(what) {
    const { text, at } = this;
    if (what === '\\') this.readEscape();
    else if (what === '`') this.readCode();
    else if (what === '*' || what === '_' || what === '~') this.readMarks(what);
    else if (what === '[' || (what === '!' && text[at + 1] === '[')) this.openBracket(what === '!');
    else if (what === ']') this.closeBracket();
    else if (what === '<' && this.readPointed()) return;
    else if (what === '&' && this.readEntity()) return;
    else if (what.length > 1) this.readAddress();
    else this.add(what, at + 1);
  }

  readEscape() {
    const next = this.text[this.at + 1] ?? '';
    if (PUNCTUATION.test(next)) this.add(next, this.at + 2);
    else if (next === '\n') this.add('\n', this.at + 2);
    else this.add('\\', this.at + 1);
  }

  readCode() {
    let begin = this.at;
    while (this.text[begin] === '`') begin += 1;
    const length = begin - this.at;
    const end = this.nextTicks.get(this.at);
    if (end === undefined) {
      this.add('`'.repeat(length), begin);
      return;
    }
    let code = this.text.slice(begin, end).replaceAll('\n', ' ');
    if (code.startsWith(' ') && code.endsWith(' ') && code.trim() !== '') code = code.slice(1, -1);
    this.pieces.push({ node: make('code', { text: code }) });
    this.at = end + length;
  }

  readMarks(mark) {
    const { text, at } = this;
    let end = at;
    while (text[end] === mark) end += 1;
    const before = at === 0 ? '' : text.slice(Math.max(0, at - 2), at).match(/[^]$/u)?.[0] ?? '';
    const after = end === text.length ? '' : String.fromCodePoint(text.codePointAt(end));
    const length = end - at;
    if (mark === '~' && length !== 2) {
      this.add(mark.repeat(length), end);
      return;
    }
    this.pieces.push({ mark, length, left: length, begins: [], ends: [], ...sidesOf(mark, before, after) });
    this.at = end;
  }

  openBracket(image) {
    this.brackets.push({ piece: this.pieces.length, image });
    this.add(image ? '![' : '[', this.at + (image ? 2 : 1));
  }

  closeBracket() {
    const bracket = this.brackets.pop();
    const target = bracket && this.text[this.at + 1] === '(' ? targetAt(this.text, this.at + 2) : null;
    if (!target) {
      this.add(']', this.at + 1);
      return;
    }
    const address = safeAddress(target.address);
    if (!address) { // Shown as it was written.
      this.add(this.text.slice(this.at, target.end), target.end);
      return;
    }
    // No link stands in a link: those inside become their text.
    const inside = this.pieces.splice(bracket.piece).slice(1).map((piece) =>
      (piece.node?.tagName === 'A' ? { text: piece.node.textContent } : piece));
    const content = assemble(inside);
    this.pieces.push({ node: bracket.image ? link(address, 'Image: ', content) : link(address, content) });
    // An image may be part of a link, a link may not.
    if (!bracket.image) this.brackets.length = 0;
    this.at = target.end;
  }

  readPointed() {
    return this.match(/<((?:https?:\/\/|mailto:)[^\s<>]*)>/, (found) => {
      const address = safeAddress(found[1]);
      return address && { node: link(address, found[1]) };
    });
  }

  readEntity() {
    return this.match(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-z]{2,6}));/, (found) => {
      if (found[3]) return Object.hasOwn(ENTITIES, found[3]) ? { text: ENTITIES[found[3]] } : null;
      const code = found[1] ? Number(found[1]) : parseInt(found[2], 16);
      const valid = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
      return { text: valid ? String.fromCodePoint(code) : '\ufffd' };
    });
  }

  /** An address that stands in the text without any marks. */
  readAddress() {
    const sticky = /https?:\/\/[^\s<>[\]`"|]*/y;
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text)[0];
    let end = found.length;
    // Closing parentheses that nothing has opened.
    let surplus = found.split(')').length - found.split('(').length;
    while (/[.,:;!?'*_~)]/.test(found[end - 1])) {
      if (found[end - 1] === ')' && surplus-- <= 0) break;
      end -= 1;
    }
    const shown = found.slice(0, end);
    const address = /^https?:\/\/./.test(shown) ? safeAddress(shown) : null;
    if (address) this.pieces.push({ node: link(address, shown) });
    else this.pieces.push({ text: shown });
    this.at += Math.max(1, end);
  }
}

/** A fragment with this text's emphasis, code and links. Line ends stay in it as they are. */
export function inline(text) {
  return assemble(new Scanner(text).scan());
}
