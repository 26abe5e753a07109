// A conversation on the screen: its questions and answers, and the one that is being given.

import { ApiError, generate } from '../api.js';
import { announce, make } from '../dom.js';
import { chooseSeed, requestOptions, withSystem } from '../settings.js';
import { Answer, summarise } from './answer.js';
import { Question } from './question.js';

export class Talk {
  /** `chat` is told what happens and knows the settings: see class Chat. */
  constructor(conversation, chat) {
    Object.assign(this, { conversation, chat });
    this.abort = null; // Ends the answer that is being given.
    this.views = []; // {question, answer} of each turn.
    this.element = make('div', { class: 'messages' });
    for (const turn of conversation.turns) this.show(turn);
  }

  get busy() {
    return this.abort !== null;
  }

  get answers() {
    return this.views.map((view) => view.answer);
  }

  /** The rounds of the last answer. */
  get rounds() {
    return this.views.at(-1)?.answer.rounds ?? [];
  }

  newAnswer() {
    const answer = new Answer({
      onRounds: (rounds) => this.chat.onRounds(this, answer, rounds),
      onPick: (round) => this.chat.onPick(round),
      onAgain: () => this.again(),
    });
    answer.tokens.setReachable(this.chat.origins);
    return answer;
  }

  /** Shows a turn of before. */
  show(turn) {
    const view = this.addView(turn);
    view.answer.tokens.addText(turn.answer);
    view.answer.end(turn.foot);
    if (turn.error !== '') view.answer.showError(turn.error);
  }

  addView(turn) {
    const view = {
      question: new Question(turn.question, (text) => this.askInstead(view, text)),
      answer: this.newAnswer(),
    };
    this.views.push(view);
    this.element.append(view.question.element, view.answer.element);
    return view;
  }

  /** Asks what comes next. */
  async ask(question) {
    if (this.busy) return;
    const turn = { question, answer: '', foot: '', error: '' };
    this.conversation.turns.push(turn);
    await this.receive(turn, this.addView(turn));
  }

  /** Asks something else in the place of a question, and forgets what came after it. */
  async askInstead(view, question) {
    if (this.busy) return;
    const at = this.views.indexOf(view);
    for (const { question: asked, answer } of this.views.splice(at)) {
      asked.element.remove();
      answer.element.remove();
    }
    this.conversation.turns.splice(at);
    await this.ask(question);
  }

  /** Has the last question answered once more. The answer of before goes when another begins. */
  async again() {
    if (this.busy) return;
    const view = this.views.at(-1);
    const before = view.answer;
    view.answer = this.newAnswer();
    before.element.replaceWith(view.answer.element);
    await this.receive(this.conversation.turns.at(-1), view, before);
  }

  stop() {
    this.abort?.abort();
  }

  /** What the model is told: a question that got no answer is not part of it. */
  messages(turn) {
    const before = this.conversation.turns.slice(0, this.conversation.turns.indexOf(turn));
    return [
      ...before.filter(({ answer }) => answer !== '').flatMap(({ question, answer }) =>
        [{ role: 'user', content: question }, { role: 'assistant', content: answer }]),
      { role: 'user', content: turn.question },
    ];
  }

  async receive(turn, view, before = null) {
    const { answer } = view;
    const settings = this.chat.settingsOf(this.conversation);
    const seed = chooseSeed(settings);
    this.abort = new AbortController();
    this.chat.onBegin(this);
    announce('Answering');
    let foot = '';
    let failure = null;
    try {
      let end = {};
      for await (const part of generate(withSystem(settings, this.messages(turn)),
                                        requestOptions(settings, seed), this.abort.signal)) {
        if (part.round) answer.addRound(part.round);
        else if (part.text) answer.addText(part.text);
        else end = part;
      }
      foot = summarise(end, seed);
    } catch (error) {
      failure = error;
      if (error.name === 'AbortError') foot = 'Stopped';
    }
    answer.end(foot);
    if (answer.text === '' && failure && before) {
      answer.element.replaceWith(before.element);
      view.answer = before;
    } else {
      Object.assign(turn, { answer: answer.text, foot, error: '' });
    }
    if (failure) this.fail(turn, view.answer, failure);
    else announce(`Answer complete: ${answer.text}`);
    this.abort = null;
    this.chat.onEnd(this);
  }

  fail(turn, answer, error) {
    if (error.name === 'AbortError') {
      announce('Stopped');
      return;
    }
    if (!(error instanceof ApiError)) console.error(error);
    turn.error = error.message;
    let button = null;
    if (error.status === 401) {
      button = make('button', { class: 'quiet', type: 'button', text: 'Enter an API key' });
      button.addEventListener('click', () => this.chat.openSettings());
    }
    answer.showError(error.message, button);
  }

  /** Takes down how far the answer is that is being given, in case the tab is closed. */
  takeDown() {
    const turn = this.conversation.turns.at(-1);
    const { answer } = this.views.at(-1);
    answer.drawTokens();
    if (answer.text !== '') Object.assign(turn, { answer: answer.text, foot: 'Stopped' });
  }
}
