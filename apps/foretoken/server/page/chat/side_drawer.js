// Where there is no room for the list of conversations, it comes in over the page when asked for.

import { byId } from '../dom.js';

export class SideDrawer {
  constructor() {
    this.side = byId('side');
    this.opener = byId('open-side');
    this.opener.addEventListener('click', () => this.setOpen(true));
    byId('close-side').addEventListener('click', () => this.close());
    byId('side-shade').addEventListener('click', () => this.close());
    this.side.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
    matchMedia('(min-width: 60.01rem)').addEventListener('change', () => this.close());
  }

  close() {
    if (!this.side.classList.contains('open')) return;
    this.setOpen(false);
    this.opener.focus();
  }

  // While it is open nothing else can be reached.
  setOpen(open) {
    this.side.classList.toggle('open', open);
    byId('side-shade').hidden = !open;
    this.opener.setAttribute('aria-expanded', String(open));
    for (const element of document.querySelectorAll('.bar, .talk, .rounds')) element.inert = open;
    if (open) (this.side.querySelector('[aria-current]') ?? byId('new-chat')).focus();
  }
}
