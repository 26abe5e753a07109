// Buttons with drawings, and copying.

import { announce, make, svg } from './dom.js';

const COPIED_MS = 2000;
const DRAWINGS = {
  copy: 'M9 9h10v10H9zM5.5 15H5V5h10v.5',
  done: 'M5 12.5l4.5 4.5L19 7.5',
  edit: 'M5 19l1-4L16 5l3 3L9 18zM14 7l3 3',
  remove: 'M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 10.5v5M13.5 10.5v5',
  again: 'M19 12a7 7 0 1 1-2.1-5M19 4v4h-4',
};

function drawing(name) {
  const image = svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' });
  image.append(svg('path', { d: DRAWINGS[name] }));
  return image;
}

/** A button that shows a drawing; `label` is its accessible name, `text` what stands beside it. */
export function drawnButton(name, label, onClick, text = '') {
  const button = make('button', { class: text ? 'quiet small' : 'icon small', type: 'button',
                                  'aria-label': label, title: label }, drawing(name), text);
  button.addEventListener('click', onClick);
  return button;
}

/** Puts `text` on the clipboard. Returns whether that worked. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers give pages that come by plain HTTP from another machine no such clipboard.
    const focused = document.activeElement;
    const area = make('textarea', { class: 'hidden', 'aria-hidden': 'true', tabindex: '-1' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    focused?.focus({ preventScroll: true });
    return done;
  }
}

/** A button that copies what `read()` returns at that moment. */
export function copyButton(label, read, text = '') {
  let timer = 0;
  const show = (name, said) => {
    button.replaceChildren(drawing(name), said ? (text && said) : text);
    button.title = said || label;
    button.setAttribute('aria-label', said || label);
  };
  const button = drawnButton('copy', label, async () => {
    const done = await copy(read());
    const said = done ? 'Copied' : 'Not copied';
    show(done ? 'done' : 'copy', said);
    announce(said);
    clearTimeout(timer);
    timer = setTimeout(() => show('copy', ''), COPIED_MS);
  }, text);
  return button;
}
