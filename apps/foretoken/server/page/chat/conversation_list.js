// The list of conversations: opens, names and removes them.

import { drawnButton } from '../buttons.js';
import { announce, byId, make } from '../dom.js';
import { titleOf } from './conversations.js';

const PROBLEMS = {
  full: 'The browser has no room for more: what is new is lost when this tab closes. Delete a ' +
    'conversation to keep it.',
  refused: 'The browser keeps nothing for this page: conversations are lost when this tab closes.',
};

export class ConversationList {
  /**
   * `isBusy(id)` tells where an answer is being given; `handlers` are `open(conversation)` and
   * `removed(conversation)`.
   */
  constructor(conversations, isBusy, handlers) {
    Object.assign(this, { conversations, isBusy, handlers });
    this.list = byId('conversations');
    this.removed = null; // The last one, which can be brought back.
    this.renaming = false;
    byId('undo').addEventListener('click', () => this.undo());
  }

  show(currentId) {
    this.currentId = currentId;
    const { problem } = this.conversations;
    byId('storage-problem').hidden = problem === '';
    byId('storage-problem').textContent = PROBLEMS[problem] ?? '';
    if (this.renaming) return; // Drawn when that is done.
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset : null;
    this.list.replaceChildren(...this.conversations.all().map((conversation) => this.item(conversation)));
    if (focused) this.button(focused.id, focused.act)?.focus();
    byId('no-conversations').hidden = this.list.children.length > 0;
  }

  button(id, act) {
    return this.list.querySelector(`[data-id="${CSS.escape(id)}"][data-act="${act}"]`);
  }

  item(conversation) {
    const title = titleOf(conversation);
    const current = conversation.id === this.currentId;
    const busy = this.isBusy(conversation.id);
    const open = make('button', { class: 'open', type: 'button', title, dir: 'auto',
                                  'aria-current': current ? 'true' : null },
                      title, busy && make('span', { class: 'hidden', text: ', answering' }));
    open.addEventListener('click', () => this.handlers.open(conversation));
    const rename = drawnButton('edit', `Rename ${title}`, () => this.rename(conversation, item));
    const remove = drawnButton('remove', `Delete ${title}`, () => this.remove(conversation));
    for (const [act, button] of Object.entries({ open, rename, remove })) {
      Object.assign(button.dataset, { id: conversation.id, act });
    }
    const item = make('li', { class: busy ? 'answering' : null }, open, rename, remove);
    return item;
  }

  rename(conversation, item) {
    const input = make('input', { 'aria-label': 'Name of the conversation', maxlength: '100' });
    input.value = titleOf(conversation);
    this.renaming = true;
    const finish = (title, focus) => {
      if (!this.renaming) return;
      this.renaming = false;
      if (title !== titleOf(conversation)) this.conversations.rename(conversation, title);
      else this.show(this.currentId);
      if (focus) this.button(conversation.id, 'rename')?.focus();
    };
    input.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Enter') finish(input.value.trim(), true);
      else if (event.key === 'Escape') finish(titleOf(conversation), true);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    input.addEventListener('blur', () => finish(input.value.trim(), false));
    item.replaceChildren(input);
    input.select();
  }

  remove(conversation) {
    const at = this.conversations.all().indexOf(conversation);
    this.removed = conversation;
    this.conversations.remove(conversation);
    this.handlers.removed(conversation);
    byId('removed').hidden = false;
    byId('removed-text').textContent = `“${titleOf(conversation)}” is deleted.`;
    announce(byId('removed-text').textContent);
    const next = this.list.children[Math.min(at, this.list.children.length - 1)];
    (next?.querySelector('.open') ?? byId('new-chat')).focus();
  }

  undo() {
    byId('removed').hidden = true;
    this.conversations.restore(this.removed);
    this.handlers.open(this.removed);
    this.button(this.removed.id, 'open')?.focus();
    this.removed = null;
  }
}
