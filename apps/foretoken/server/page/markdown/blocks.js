// Markdown's blocks: from lines to plain objects, in time linear in the text whatever it holds.
// What the renderer shows is described in docs/do/web_page.md.

const MAX_DEPTH = 8; // Quotes and lists in each other; deeper marks are text.
const TAB = 4;

/** How many columns of white space a line begins with. */
function indentOf(line) {
  let columns = 0;
  for (const character of line) {
    if (character === ' ') columns += 1;
    else if (character === '\t') columns += TAB - (columns % TAB);
    else break;
  }
  return columns;
}

/** The line without its first `columns` columns of white space, where it begins with so many. */
function outdent(line, columns) {
  let column = 0;
  let at = 0;
  for (; at < line.length && column < columns; ++at) {
    if (line[at] === ' ') column += 1;
    else if (line[at] === '\t') column += TAB - (column % TAB);
    else break;
  }
  return ' '.repeat(Math.max(0, column - columns)) + line.slice(at);
}

const isBlank = (line) => line.trim() === '';
const isCode = (line) => indentOf(line) >= TAB && !isBlank(line);
const isRule = (line) => !isCode(line) && /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line.trim());
const isQuote = (line) => !isCode(line) && line.trimStart().startsWith('>');

/** What a fence opens with: its mark and what follows it. */
function fenceOf(line) {
  const found = isCode(line) ? null : /^(`{3,}|~{3,})([^]*)$/.exec(line.trim());
  if (!found || (found[1][0] === '`' && found[2].includes('`'))) return null;
  return { mark: found[1], info: found[2].trim() };
}

function closesFence(line, mark) {
  const text = line.trim();
  return !isCode(line) && text.length >= mark.length && text === mark[0].repeat(text.length);
}

function headingOf(line) {
  const found = isCode(line) ? null : /^(#{1,6})(?:[ \t]([^]*))?$/.exec(line.trim());
  if (!found) return null;
  let text = (found[2] ?? '').trim();
  let end = text.length;
  while (text[end - 1] === '#') end -= 1;
  if (end === 0 || /[ \t]/.test(text[end - 1])) text = text.slice(0, end).trimEnd();
  return { level: found[1].length, text };
}

/** The mark of a list's item: its kind, its number and where the item's own text begins. */
function markerOf(line) {
  const indent = indentOf(line);
  if (indent >= TAB) return null;
  const text = line.trimStart();
  const found = /^(?:[-+*]|(\d{1,9})[.)])(?=[ \t]|$)/.exec(text);
  if (!found || isRule(line)) return null;
  const mark = found[0];
  const rest = text.slice(mark.length);
  const space = isBlank(rest) ? 1 : indentOf(rest);
  return {
    indent,
    kind: mark.at(-1),
    ordered: found[1] !== undefined,
    number: Number(found[1] ?? 0),
    empty: isBlank(rest),
    begin: indent + mark.length + (space > TAB ? 1 : space),
    rest: outdent(rest, space > TAB ? 1 : space),
  };
}

/** The cells of a row of a table. A `|` after a backslash belongs to its cell. */
function cellsOf(line) {
  const text = line.trim();
  const cells = [];
  let begin = text.startsWith('|') ? 1 : 0;
  for (let at = begin; at < text.length; ++at) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '|') {
      cells.push(text.slice(begin, at));
      begin = at + 1;
    }
  }
  if (begin < text.length) cells.push(text.slice(begin));
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** How the columns of the table are set that begins at line `at`; null where none begins. */
function tableAt(lines, at) {
  const below = lines[at + 1];
  if (below === undefined || !lines[at].includes('|') || !below.includes('|')) return null;
  if (isCode(lines[at]) || !/^[-:| \t]+$/.test(below)) return null;
  const columns = cellsOf(below);
  if (!columns.every((cell) => /^:?-+:?$/.test(cell))) return null;
  if (cellsOf(lines[at]).length !== columns.length) return null;
  return columns.map((cell) =>
    (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : 'left'));
}

/** Whether a line ends the table that stands before it. */
function endsTable(line, depth) {
  if (isRule(line) || fenceOf(line) || headingOf(line)) return true;
  if (depth >= MAX_DEPTH) return false;
  if (isQuote(line)) return true;
  const marker = markerOf(line);
  return marker !== null && !marker.empty && (!marker.ordered || marker.number === 1);
}

/** Whether line `at` begins a block although a paragraph stands before it. */
function interrupts(lines, at, depth) {
  return endsTable(lines[at], depth) || tableAt(lines, at) !== null;
}

/** Collects the lines inside a quote or an item, and knows whether a paragraph is open in them. */
class Inside {
  constructor() {
    this.lines = [];
    this.fence = null;
    this.open = false;
  }
  add(line) {
    if (this.fence) {
      if (closesFence(line, this.fence)) this.fence = null;
      this.open = false;
    } else {
      this.fence = fenceOf(line)?.mark ?? null;
      this.open = !this.fence && !isBlank(line) && !isRule(line) && !headingOf(line);
    }
    this.lines.push(line);
  }
}

function readFence(lines, at) {
  const { mark, info } = fenceOf(lines[at]);
  const indent = indentOf(lines[at]);
  let end = at + 1;
  while (end < lines.length && !closesFence(lines[end], mark)) end += 1;
  const code = lines.slice(at + 1, end).map((line) => outdent(line, indent));
  const language = info.split(/[\s{,]/, 1)[0];
  return [{ kind: 'code', language, text: code.join('\n') }, Math.min(end + 1, lines.length)];
}

function readIndentedCode(lines, at) {
  let end = at;
  for (let i = at; i < lines.length && (isCode(lines[i]) || isBlank(lines[i])); ++i) {
    if (!isBlank(lines[i])) end = i + 1;
  }
  const code = lines.slice(at, end).map((line) => outdent(line, TAB));
  return [{ kind: 'code', language: '', text: code.join('\n') }, end];
}

function readQuote(lines, at, depth) {
  const inside = new Inside();
  let end = at;
  for (; end < lines.length; ++end) {
    const line = lines[end];
    if (isQuote(line)) inside.add(outdent(line.trimStart().slice(1), 1));
    else if (inside.open && !isBlank(line) && !interrupts(lines, end, depth)) inside.add(line);
    else break;
  }
  return [{ kind: 'quote', blocks: parseBlocks(inside.lines, depth + 1) }, end];
}

/** The lines of the item that begins at line `at`, and where what is not of it begins. */
function readItem(lines, at, marker, depth) {
  const inside = new Inside();
  inside.add(marker.rest);
  // Models indent what belongs to an item by two columns, however wide its mark is.
  const least = Math.min(marker.begin, marker.indent + 2);
  let end = at + 1;
  let blanks = 0;
  for (let i = end; i < lines.length; ++i) {
    const line = lines[i];
    if (isBlank(line)) {
      blanks += 1;
      continue;
    }
    const deep = indentOf(line) >= least;
    const lazy = blanks === 0 && inside.open && !markerOf(line) && !interrupts(lines, i, depth);
    if (!deep && !lazy) break;
    for (; blanks > 0; --blanks) inside.add('');
    inside.add(outdent(line, deep ? marker.begin : 0));
    end = i + 1;
  }
  return [inside.lines, end];
}

function readList(lines, at, depth) {
  const first = markerOf(lines[at]);
  const list = { kind: 'list', ordered: first.ordered, start: first.number, loose: false, items: [] };
  let end = at;
  for (let next = at; next < lines.length;) {
    const marker = markerOf(lines[next]);
    if (marker?.kind !== first.kind) break;
    if (next > end) list.loose = true; // A blank line between two items.
    const [inside, after] = readItem(lines, next, marker, depth);
    const task = /^\[([ xX])\][ \t]/.exec(inside[0]);
    if (task) inside[0] = inside[0].slice(task[0].length);
    const blocks = parseBlocks(inside, depth + 1);
    if (blocks.filter((block) => block.kind === 'paragraph').length > 1) list.loose = true;
    list.items.push({ blocks, done: task ? task[1] !== ' ' : null });
    end = after;
    next = after;
    while (next < lines.length && isBlank(lines[next])) next += 1;
  }
  return [list, end];
}

function readTable(lines, at, columns, depth) {
  const table = { kind: 'table', columns, head: cellsOf(lines[at]), rows: [] };
  let end = at + 2;
  for (; end < lines.length && lines[end].includes('|'); ++end) {
    if (endsTable(lines[end], depth)) break;
    table.rows.push(cellsOf(lines[end]).slice(0, columns.length));
  }
  return [table, end];
}

function readParagraph(lines, at, depth) {
  const text = [lines[at].trim()];
  let end = at + 1;
  for (; end < lines.length && !isBlank(lines[end]); ++end) {
    const under = isCode(lines[end]) ? null : /^(=+|-+)$/.exec(lines[end].trim());
    if (under) {
      return [{ kind: 'heading', level: under[1][0] === '=' ? 1 : 2, text: text.join('\n') }, end + 1];
    }
    if (interrupts(lines, end, depth)) break;
    text.push(lines[end].trim());
  }
  return [{ kind: 'paragraph', text: text.join('\n') }, end];
}

function readBlock(lines, at, depth) {
  const line = lines[at];
  if (isCode(line)) return readIndentedCode(lines, at);
  if (fenceOf(line)) return readFence(lines, at);
  const heading = headingOf(line);
  if (heading) return [{ kind: 'heading', ...heading }, at + 1];
  if (isRule(line)) return [{ kind: 'rule' }, at + 1];
  if (depth < MAX_DEPTH && isQuote(line)) return readQuote(lines, at, depth);
  if (depth < MAX_DEPTH && markerOf(line)) return readList(lines, at, depth);
  const columns = tableAt(lines, at);
  if (columns) return readTable(lines, at, columns, depth);
  return readParagraph(lines, at, depth);
}

/** The blocks of these lines, each with the number of its first `line`. */
export function parseBlocks(lines, depth = 0) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [block, end] = readBlock(lines, at, depth);
    blocks.push({ ...block, line: at });
    at = end;
  }
  return blocks;
}
