// The official `openai` npm package against a running server: node client_test.mjs BASE_URL
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI, { APIUserAbortError, BadRequestError, NotFoundError } from 'openai';
import { LengthFinishReasonError } from 'openai/core/error';
import { makeParseableResponseFormat } from 'openai/lib/parser';

const client = new OpenAI({ baseURL: process.env.FORETOKEN_URL + '/v1', apiKey: 'none', maxRetries: 0 });
const model = 'demo-target';
const messages = [{ role: 'user', content: 'Tell me a story about a cat.' }];

async function stats() {
  return (await fetch(process.env.FORETOKEN_URL + '/stats')).json();
}

test('models', async () => {
  const ids = [];
  for await (const entry of await client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, [model]);
});

test('chat', async () => {
  const reply = await client.chat.completions.create({ model, messages, temperature: 0, max_completion_tokens: 40 });
  assert.equal(reply.object, 'chat.completion');
  assert.ok(reply.choices[0].message.content.length > 20);
  assert.equal(reply.choices[0].message.role, 'assistant');
  assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
});

test('an answer can be sent back', async () => {
  const first = await client.chat.completions.create({ model, messages, seed: 1, max_completion_tokens: 20 });
  const next = await client.chat.completions.create({
    model,
    messages: [...messages, first.choices[0].message, { role: 'user', content: [{ type: 'text', text: 'And then?' }] }],
    max_completion_tokens: 20,
  });
  assert.ok(next.choices[0].message.content.length > 0);
});

test('streaming', async () => {
  const options = { model, messages, temperature: 0.8, seed: 4, max_completion_tokens: 48 };
  const whole = await client.chat.completions.create(options);
  const stream = await client.chat.completions.create({ ...options, stream: true, stream_options: { include_usage: true } });
  let text = '';
  let usage = null;
  let finish = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? '';
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(finish, whole.choices[0].finish_reason);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test('the stream helper', async () => {
  const runner = client.chat.completions.stream({ model, messages, temperature: 0, max_completion_tokens: 24 });
  let text = '';
  runner.on('content', (delta) => { text += delta; });
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].message.content, text);
});

test('n', async () => {
  const reply = await client.chat.completions.create({ model, messages, n: 3, seed: 9, max_completion_tokens: 24 });
  assert.equal(reply.choices.length, 3);
  assert.equal(new Set(reply.choices.map((choice) => choice.message.content)).size, 3);
});

test('stop', async () => {
  const options = { model, prompt: 'Once upon a time', temperature: 0, max_tokens: 60 };
  const full = await client.completions.create(options);
  const at = full.choices[0].text.indexOf('Lily');
  assert.ok(at > 0);
  const cut = await client.completions.create({ ...options, stop: ['Lily', 'unheard'] });
  assert.equal(cut.choices[0].text, full.choices[0].text.slice(0, at));
  assert.equal(cut.choices[0].finish_reason, 'stop');
});

test('logprobs', async () => {
  const reply = await client.chat.completions.create({
    model, messages, temperature: 0, logprobs: true, top_logprobs: 2, max_completion_tokens: 6,
  });
  const { content } = reply.choices[0].logprobs;
  assert.equal(content.length, reply.usage.completion_tokens);
  for (const entry of content) {
    assert.equal(entry.top_logprobs.length, 2);
    assert.equal(entry.top_logprobs[0].token, entry.token);
    assert.ok(entry.logprob <= 0);
  }
});

test('every mode gives the same text', async () => {
  const texts = new Set();
  for (const mode of ['ar', 'ngram', 'sd', 'ssd']) {
    const reply = await client.chat.completions.create({
      model, messages, temperature: 1, seed: 3, max_completion_tokens: 40, speculative: { mode },
    });
    assert.equal(reply.usage.mode, mode);
    texts.add(reply.choices[0].message.content);
  }
  assert.equal(texts.size, 1);
});

test('json_schema', async () => {
  const schema = {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 10 }, color: { enum: ['red', 'blue'] }, age: { type: 'integer', minimum: 0, maximum: 99 } },
    required: ['name', 'color', 'age'],
    additionalProperties: false,
  };
  const response_format = { type: 'json_schema', json_schema: { name: 'cat', schema, strict: true } };
  const options = { model, messages, seed: 2, max_completion_tokens: 100, response_format };
  const contents = new Set();
  for (const mode of ['ar', 'ngram', 'sd', 'ssd']) {
    const reply = await client.chat.completions.create({ ...options, speculative: { mode } });
    assert.equal(reply.choices[0].finish_reason, 'stop');
    contents.add(reply.choices[0].message.content);
  }
  assert.equal(contents.size, 1);
  const [content] = contents;
  const cat = JSON.parse(content);
  assert.deepEqual(Object.keys(cat), ['name', 'color', 'age']);
  assert.ok(['red', 'blue'].includes(cat.color) && Number.isInteger(cat.age));
  // The helpers that parse what they get.
  const parseable = { ...options, response_format: makeParseableResponseFormat(response_format, JSON.parse) };
  const parsed = await client.chat.completions.parse(parseable);
  assert.deepEqual(parsed.choices[0].message.parsed, cat);
  const runner = client.chat.completions.stream(parseable);
  assert.deepEqual((await runner.finalChatCompletion()).choices[0].message.parsed, cat);
  const object = await client.chat.completions.create({ model, messages, response_format: { type: 'json_object' }, max_completion_tokens: 30 });
  assert.ok(object.choices[0].message.content.startsWith('{'));
  await assert.rejects(client.chat.completions.parse({ ...parseable, max_completion_tokens: 3 }), LengthFinishReasonError);
  await assert.rejects(
    client.chat.completions.create({ ...options, response_format: { type: 'json_schema', json_schema: { name: 'bad', schema: { not: {} } } } }),
    (error) => error instanceof BadRequestError && error.param === 'response_format.json_schema.schema');
});

test('responses', async () => {
  const options = { model, input: messages, temperature: 0.8, seed: 4, max_output_tokens: 48 };
  const whole = await client.responses.create(options);
  const chat = await client.chat.completions.create({ model, messages, temperature: 0.8, seed: 4, max_completion_tokens: 48 });
  assert.equal(whole.output_text, chat.choices[0].message.content);
  let text = '';
  let last = null;
  for await (const event of await client.responses.create({ ...options, stream: true })) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    last = event;
  }
  assert.equal(text, whole.output_text);
  assert.equal(last.type, 'response.incomplete');
  assert.equal(last.response.incomplete_details.reason, 'max_output_tokens');
  const helper = await client.responses.stream({ ...options, stop: [text.split(' ')[5]] }).finalResponse();
  assert.equal(helper.status, 'completed');
  assert.ok(text.startsWith(helper.output_text));
  await assert.rejects(client.responses.create({ ...options, previous_response_id: 'resp_1' }),
    (error) => error instanceof BadRequestError && error.param === 'previous_response_id');
});

test('errors', async () => {
  await assert.rejects(client.models.retrieve('gpt-5'), (error) => {
    assert.ok(error instanceof NotFoundError);
    assert.equal(error.code, 'model_not_found');
    assert.equal(error.param, 'model');
    return true;
  });
  const other = await client.chat.completions.create({ model: 'gpt-5', messages, max_tokens: 4 });
  assert.equal(other.model, model);
  await assert.rejects(client.chat.completions.create({ model, messages, temperature: -1 }), (error) => {
    assert.ok(error instanceof BadRequestError);
    assert.equal(error.param, 'temperature');
    assert.equal(error.type, 'invalid_request_error');
    return true;
  });
  await assert.rejects(client.chat.completions.create({ model, messages, tools: [{ type: 'function', function: { name: 'f' } }] }), BadRequestError);
});

test('tools', async () => {
  const caller = new OpenAI({ baseURL: process.env.FORETOKEN_TOOLS_URL + '/v1', apiKey: 'none', maxRetries: 0 });
  const parameters = {
    type: 'object',
    additionalProperties: false,
    required: ['place'],
    properties: { place: { type: 'string', enum: ['here', 'there'] } },
  };
  const tools = [{ type: 'function', function: { name: 'weather', parameters, strict: true } }];
  const stream = caller.chat.completions.stream({
    model, messages, tools, tool_choice: 'required', parallel_tool_calls: false, max_completion_tokens: 150,
  });
  let pieces = '';
  stream.on('tool_calls.function.arguments.delta', ({ arguments_delta: delta }) => { pieces += delta; });
  const { message, finish_reason: finish } = (await stream.finalChatCompletion()).choices[0];
  assert.equal(finish, 'tool_calls');
  const [call] = message.tool_calls;
  assert.equal(call.function.name, 'weather');
  assert.equal(call.function.arguments, pieces);
  assert.match(JSON.parse(pieces).place, /^(t?here)$/);
  const next = await caller.chat.completions.create({
    model,
    messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: 'Sunny.' }],
    tools,
    max_completion_tokens: 20,
  });
  assert.ok(next.choices[0].message.content.length > 0);
});

test('abort', async () => {
  const before = (await stats()).requests.client_gone;
  const stream = await client.completions.create({
    model, prompt: 'Once upon a time', max_tokens: 100000, n: 8, stream: true, ignore_eos: true,
  });
  for await (const chunk of stream) {
    if (chunk.choices[0].text) break;
  }
  stream.controller.abort();
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(
    client.completions.create(
      { model, prompt: 'Once upon a time', max_tokens: 100000, n: 100, ignore_eos: true },
      { signal: controller.signal }),
    APIUserAbortError);
  for (let tries = 0; ; ++tries) {
    const now = await stats();
    if (now.running === 0 && now.waiting === 0 && now.kv.used === 0 && now.requests.client_gone === before + 2) break;
    assert.ok(tries < 200, JSON.stringify(now));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});
