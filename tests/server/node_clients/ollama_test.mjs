// The official `ollama` npm package against running servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ollama } from 'ollama';

const client = new Ollama({ host: process.env.FORETOKEN_URL });
const caller = new Ollama({ host: process.env.FORETOKEN_TOOLS_URL });
const model = 'demo-target';
const messages = [{ role: 'user', content: 'Tell me a story about a cat.' }];
const options = { temperature: 0, num_predict: 32 };

async function all(parts) {
  const list = [];
  for await (const part of parts) list.push(part);
  return list;
}

test('chats', async () => {
  const whole = await client.chat({ model, messages, options });
  assert.deepEqual([whole.done_reason, whole.eval_count], ['length', 32]);
  const parts = await all(await client.chat({ model, messages, options, stream: true }));
  assert.equal(parts.map((part) => part.message.content).join(''), whole.message.content);
  assert.equal(parts.at(-1).done, true);
});

test('generations', async () => {
  const asked = { model, prompt: 'Once upon a time', raw: true, options };
  const whole = await client.generate(asked);
  const parts = await all(await client.generate({ ...asked, stream: true }));
  assert.equal(parts.map((part) => part.response).join(''), whole.response);
});

test('a schema', async () => {
  const format = { type: 'object', properties: { age: { enum: [1, 2] } }, required: ['age'], additionalProperties: false };
  const reply = await client.chat({ model, messages, format, options: { num_predict: 100 } });
  assert.ok([1, 2].includes(JSON.parse(reply.message.content).age));
});

test('models', async () => {
  assert.deepEqual((await client.list()).models.map((entry) => entry.name), [model]);
  const shown = await client.show({ model });
  assert.deepEqual(shown.capabilities, ['completion']);
  assert.ok((await caller.show({ model })).capabilities.includes('tools'));
  assert.equal((await client.ps()).models[0].model, model);
});

test('embeddings', async () => {
  const { embeddings } = await client.embed({ model, input: ['a cat', 'a dog'] });
  assert.equal(embeddings.length, 2);
  assert.equal(embeddings[0].length, 256);
});

test('a call goes back with its answer', async () => {
  const tools = [{ type: 'function', function: { name: 'now', description: 'The time.', parameters: { type: 'object', properties: {} } } }];
  const calls = [{ function: { name: 'now', arguments: {} } }];
  const alone = await caller.chat({ model, messages, tools, options });
  const reply = await caller.chat({
    model, tools, options,
    messages: [...messages, { role: 'assistant', content: '', tool_calls: calls },
      { role: 'tool', tool_name: 'now', content: 'Noon.' }],
  });
  assert.ok(reply.prompt_eval_count > alone.prompt_eval_count);
});

test('errors', async () => {
  for (const [changed, message] of [[{ options: { temperature: -1 } }, /options\.temperature/],
    [{ messages: [{ role: 'user', content: 'word '.repeat(700) }] }, /./]]) {
    await assert.rejects(client.chat({ model, messages, ...changed }), (error) => error.status_code === 400 && message.test(error.message));
  }
});

test('abort', async () => {
  const stream = await client.generate({ model, prompt: 'Once', raw: true, stream: true, options: { num_predict: 400, temperature: 0 } });
  await assert.rejects(async () => {
    for await (const part of stream) if (part.response) stream.abort();
  }, { name: 'AbortError' });
});
