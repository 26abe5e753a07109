// What a page of another origin asks a server for, by the official client as npm gives it.
// index.html?server=URL&key=KEY
import OpenAI from '/client/index.mjs';

const given = new URLSearchParams(location.search);
const server = given.get('server');
const request = {
  model: 'any',
  messages: [{ role: 'user', content: 'Tell me a story about a cat.' }],
  temperature: 0,
  max_tokens: 24,
};

function client(apiKey = given.get('key')) {
  return new OpenAI({ baseURL: `${server}/v1`, apiKey, maxRetries: 0, dangerouslyAllowBrowser: true });
}

// What became of a call: what it gave, or the name and status of its error.
async function outcome(call) {
  try {
    return await call;
  } catch (error) {
    return { error: error.constructor.name, status: error.status ?? null, message: error.message };
  }
}

async function chat(apiKey) {
  const reply = await client(apiKey).chat.completions.create(request);
  return { text: reply.choices[0].message.content, id: reply._request_id };
}

async function stream() {
  let text = '';
  let chunks = 0;
  for await (const chunk of await client().chat.completions.create({ ...request, stream: true })) {
    text += chunk.choices[0]?.delta?.content ?? '';
    ++chunks;
  }
  return { text, chunks };
}

// As Anthropic's client calls from a browser: its key goes by a header of its own.
async function message() {
  const reply = await fetch(`${server}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': given.get('key'),
      'anthropic-version': '2023-06-01',
      'anthropic-dangerous-direct-browser-access': 'true',
    },
    body: JSON.stringify(request),
  });
  return { status: reply.status, text: (await reply.json()).content[0].text };
}

// What a browser sends without asking first.
async function health() {
  return (await fetch(`${server}/health`)).json();
}

window.calls = {
  chat: (apiKey) => outcome(chat(apiKey)),
  stream: () => outcome(stream()),
  message: () => outcome(message()),
  health: () => outcome(health()),
};
