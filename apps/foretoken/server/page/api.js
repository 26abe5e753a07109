// The server's API as the page uses it.

import { apiKey } from './settings.js';

/** What the server answered in place of what was asked for. `status` is 0 where it is not reached. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  const headers = { ...(options.body ? { 'Content-Type': 'application/json' } : {}) };
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The server cannot be reached.', 0);
  }
  if (response.ok) return response;
  const reply = await response.json().catch(() => null);
  throw new ApiError(reply?.error?.message ?? `The server answered with HTTP ${response.status}.`,
                     response.status);
}

/** The JSON at `path`. */
export async function getJson(path) {
  return (await request(path)).json();
}

/** Which model answers; empty where the server has one only. */
let model = '';
export const useModel = (name) => { model = name; };

/** The JSON at `path`, of the model in use. */
export const getModelJson = (path) =>
  getJson(model ? `${path}?model=${encodeURIComponent(model)}` : path);

/** The data of each server-sent event of a response body, as text. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error.name === 'AbortError' ? error : new ApiError('The connection to the server was lost.', 0);
    });
    if (done) return;
    const parts = (rest + value).split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(line[5] === ' ' ? 6 : 5));
      if (data.length > 0) yield data.join('\n');
    }
  }
}

/**
 * Streams the answer to a conversation. Yields, as they come, `{round}` (what the server traces of
 * a round: see docs/look_up/api.md, with `tokens` holding each token's id, text and origin), `{text}`
 * (text that belongs to no token) and at the end `{usage, timings}`.
 */
export async function* generate(messages, options, signal) {
  const body = {
    messages,
    stream: true,
    stream_options: { include_usage: true },
    speculation_trace: true,
    ...(model ? { model } : {}),
    reasoning_format: 'none', // Tokens are shown as they are, thoughts with their marks.
    ...options,
  };
  const response = await request('/v1/chat/completions',
                                 { method: 'POST', body: JSON.stringify(body), signal });
  let last = {};
  for await (const data of events(response.body)) {
    if (data === '[DONE]') {
      yield last;
      return;
    }
    const event = JSON.parse(data);
    if (event.error) throw new ApiError(event.error.message ?? 'The server failed.', 200);
    const choice = event.choices?.[0];
    if (choice?.finish_reason) last = { ...last, finish: choice.finish_reason };
    if (event.usage) last = { ...last, usage: event.usage };
    if (event.timings) last = { ...last, timings: event.timings };
    const text = choice?.delta?.content ?? '';
    if (event.speculation) {
      yield { round: event.speculation };
    } else if (text !== '') {
      yield { text };
    }
  }
  if (!last.finish) throw new ApiError('The answer was cut off.', 200);
  yield last;
}
