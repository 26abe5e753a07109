// The official `@anthropic-ai/sdk` npm package against running servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic, { BadRequestError } from '@anthropic-ai/sdk';

const clientOf = (baseURL) => new Anthropic({ baseURL, apiKey: 'none', maxRetries: 0 });
const client = clientOf(process.env.FORETOKEN_URL);
const caller = clientOf(process.env.FORETOKEN_TOOLS_URL);
const model = 'demo-target';
const messages = [{ role: 'user', content: 'Tell me a story about a cat.' }];
const chat = { model, messages, max_tokens: 32, temperature: 0 };

test('whole and streamed', async () => {
  const whole = await client.messages.create(chat);
  assert.equal(whole.stop_reason, 'max_tokens');
  assert.equal(whole.usage.output_tokens, 32);
  let text = '';
  const stream = client.messages.stream(chat).on('text', (more) => { text += more; });
  const final = await stream.finalMessage();
  assert.equal(text, whole.content[0].text);
  assert.deepEqual(final.content, whole.content);
  assert.equal(final.usage.output_tokens, 32);
});

test('tokens are counted', async () => {
  const whole = await client.messages.create(chat);
  const counted = await client.messages.countTokens({ model, messages });
  assert.equal(counted.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);
});

test('models', async () => {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, [model]);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a tool is called and answered', async () => {
  const place = { type: 'string', enum: ['here', 'there'] };
  const tools = [{
    name: 'weather', description: 'The weather.',
    input_schema: { type: 'object', properties: { place }, required: ['place'], additionalProperties: false },
  }];
  const asked = { ...chat, max_tokens: 100, tools };
  let json = '';
  const reply = await caller.messages
    .stream({ ...asked, tool_choice: { type: 'any', disable_parallel_tool_use: true } })
    .on('inputJson', (more) => { json += more; }).finalMessage();
  assert.equal(reply.stop_reason, 'tool_use');
  const [call] = reply.content;
  assert.equal(call.name, 'weather');
  assert.ok(place.enum.includes(call.input.place));
  assert.deepEqual(JSON.parse(json), call.input);
  const answered = await caller.messages.create({
    ...asked, max_tokens: 8,
    messages: [...messages, { role: 'assistant', content: reply.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Sunny.' }] }],
  });
  assert.ok(answered.usage.input_tokens + answered.usage.cache_read_input_tokens > reply.usage.input_tokens);
});

test('errors', async () => {
  const tooLong = [{ role: 'user', content: 'word '.repeat(700) }];
  for (const [body, message] of [
    [{ ...chat, temperature: -1 }, /temperature/], [{ ...chat, messages: tooLong }, /prompt is too long/]]) {
    await assert.rejects(client.messages.create(body), (error) => error instanceof BadRequestError
      && error.status === 400 && message.test(error.message)
      && error.error.error.type === 'invalid_request_error');
    await assert.rejects(client.messages.stream(body).finalMessage(), BadRequestError);
  }
});
