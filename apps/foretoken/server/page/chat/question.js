// One question of a conversation, which can be written anew.

import { copyButton, drawnButton } from '../buttons.js';
import { make } from '../dom.js';

export class Question {
  /** `onEdit(text)` is called with what is to be asked in its place. */
  constructor(text, onEdit) {
    Object.assign(this, { text, onEdit });
    this.bubble = make('p', { text, dir: 'auto' });
    this.editButton = drawnButton('edit', 'Edit and ask again', () => this.edit());
    this.editButton.classList.add('edit');
    this.actions = make('div', { class: 'actions' },
                        copyButton('Copy question', () => this.text), this.editButton);
    this.element = make('article', { class: 'question', 'aria-label': 'Question' }, this.bubble, this.actions);
  }

  edit() {
    const area = make('textarea', { 'aria-label': 'Question', rows: '2' });
    area.value = this.text;
    const cancel = make('button', { class: 'quiet', type: 'button', text: 'Cancel' });
    const send = make('button', { class: 'primary', text: 'Ask' });
    const form = make('form', { class: 'rewrite' }, area,
                      make('p', { class: 'hint', text: 'All that comes after it is replaced.' }),
                      make('div', { class: 'row' }, cancel, send));
    const close = () => {
      this.element.replaceChildren(this.bubble, this.actions);
      this.editButton.focus();
    };
    const submit = () => {
      const text = area.value.trim();
      if (text === '') return;
      close();
      this.onEdit(text);
    };
    const fit = () => {
      area.style.height = 'auto';
      area.style.height = `${area.scrollHeight + 2}px`;
    };
    cancel.addEventListener('click', close);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      submit();
    });
    area.addEventListener('input', fit);
    area.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') close();
      else if (event.key === 'Enter' && !event.shiftKey) submit();
      else return;
      event.preventDefault();
    });
    this.element.replaceChildren(form);
    fit();
    area.focus();
  }
}
