// Markdown as DOM nodes. Model output is hostile input: nothing here reads HTML or loads anything, and
// the only address that is taken over is a link's (safeAddress in inline.js).

import { copyButton } from '../buttons.js';
import { make } from '../dom.js';
import { parseBlocks } from './blocks.js';
import { inline } from './inline.js';

const LANGUAGE_LENGTH = 30; // What is longer is cut.

/** `make` with as many children as there are: a call takes only so many arguments. */
function parent(tag, attributes, children) {
  const element = make(tag, attributes);
  for (const child of children) element.append(child);
  return element;
}

/**
 * Has an element read in the direction of its text. Only once its text is in it: Chromium looks for
 * the direction again with every child that such an element is given.
 */
function directed(element) {
  element.dir = 'auto';
  return element;
}

function code(block) {
  const name = block.language.slice(0, LANGUAGE_LENGTH) || 'code';
  const head = make('div', { class: 'code-head' }, make('span', { class: 'language', text: name }),
                    copyButton('Copy code', () => block.text, 'Copy'));
  const body = make('pre', { tabindex: '0', role: 'group', 'aria-label': `Code: ${name}` },
                    make('code', { text: block.text }));
  return make('div', { class: 'code' }, head, body);
}

function list(block) {
  const start = block.ordered && block.start !== 1 ? block.start : null;
  const items = block.items.map((item) => {
    const content = item.blocks.map((inner) =>
      (inner.kind === 'paragraph' && !block.loose ? inline(inner.text) : elementOf(inner)));
    if (item.done === null) return directed(parent('li', {}, content));
    return directed(parent('li', { class: 'task' }, [item.done ? '☑ ' : '☐ ', ...content]));
  });
  return parent(block.ordered ? 'ol' : 'ul', { start, class: block.loose ? 'loose' : null }, items);
}

function table(block) {
  const row = (tag, cells) => parent('tr', {}, cells.map((cell, at) =>
    make(tag, { class: block.columns[at], scope: tag === 'th' ? 'col' : null }, inline(cell))));
  return make('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table' },
              make('table', {}, make('thead', {}, row('th', block.head)),
                   parent('tbody', {}, block.rows.map((cells) => row('td', cells)))));
}

function elementOf(block) {
  switch (block.kind) {
    case 'code': return code(block);
    case 'heading': // The page itself has headings of the first two levels.
      return directed(make(`h${Math.min(6, block.level + 2)}`, {}, inline(block.text)));
    case 'list': return list(block);
    case 'quote': return parent('blockquote', {}, block.blocks.map(elementOf));
    case 'rule': return make('hr');
    case 'table': return table(block);
    default: return directed(make('p', {}, inline(block.text)));
  }
}

/** A Markdown text in an element. It may grow: what is finished in it is not made again. */
export class MarkdownView {
  constructor(element) {
    this.element = element;
    this.settled = 0; // Up to where in the text no block can change any more.
    this.unsettled = []; // The nodes of what is after it.
  }

  /** Shows `text`, which begins with what was shown before. */
  show(text) {
    const lines = text.slice(this.settled).split('\n');
    const blocks = parseBlocks(lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line)));
    for (const node of this.unsettled) node.remove();
    this.unsettled = blocks.map(elementOf);
    for (const node of this.unsettled) this.element.append(node);
    this.settle(lines, blocks);
  }

  // The last line may go on, and may make a table of the one before it. A block that began before
  // those two is there to stay; whatever stands before it has ended.
  settle(lines, blocks) {
    const open = blocks.findLastIndex((block) => block.line < lines.length - 2);
    if (open < 1) return;
    for (let i = 0; i < blocks[open].line; ++i) this.settled += lines[i].length + 1;
    this.unsettled.splice(0, open);
  }
}
