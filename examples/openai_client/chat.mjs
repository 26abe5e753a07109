// The official `openai` npm package with a Foretoken server. In this folder:
//   npm install && node chat.mjs [URL]
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: (process.argv[2] ?? 'http://127.0.0.1:8080') + '/v1',
  apiKey: process.env.FORETOKEN_API_KEY ?? 'none',
});
const [model] = (await client.models.list()).data;

const stream = await client.chat.completions.create({
  model: model.id,
  messages: [{ role: 'user', content: 'Tell me a story about a bird.' }],
  max_completion_tokens: 120,
  temperature: 0.8,
  stream: true,
  stream_options: { include_usage: true },
  speculative: { mode: 'ssd', lookahead: 6 }, // Fields of Foretoken pass through the client.
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? '');
  if (chunk.usage) {
    const { completion_tokens, rounds, acceptance_length, hit_rate } = chunk.usage;
    console.log(`\n\n${completion_tokens} tokens in ${rounds} rounds, ${acceptance_length} per round, cache hits ${hit_rate}`);
  }
}
