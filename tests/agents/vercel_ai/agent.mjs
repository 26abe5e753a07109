// agent.mjs URL DOOR REQUEST...: an agent of Vercel's ai package with tools for the files of the
// current folder. Its users' requests follow each other in one conversation. Prints, as JSON, what it
// has answered, and why it has pruned its messages.
import {createAnthropic} from '@ai-sdk/anthropic';
import {createOpenAI} from '@ai-sdk/openai';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {APICallError, pruneMessages, stepCountIs, tool, ToolLoopAgent} from 'ai';
import {readFile, writeFile} from 'node:fs/promises';
import {z} from 'zod';

const [url, door, ...requests] = process.argv.slice(2);
const options = {baseURL: `${url}/v1`, apiKey: 'none'};
const models = {
  'chat': () => createOpenAICompatible({name: 'local', includeUsage: true, ...options})('scripted'),
  'strict-chat': () => createOpenAI(options).chat('scripted'),
  'responses': () => createOpenAI(options).responses('scripted'),
  'messages': () => createAnthropic(options)('scripted'),
};

const agent = new ToolLoopAgent({
  model: models[door](),
  instructions: 'You mend files.',
  maxOutputTokens: 1024,
  stopWhen: stepCountIs(8),
  tools: {
    read: tool({
      description: 'Reads a file.',
      inputSchema: z.object({path: z.string()}),
      execute: ({path}) => readFile(path, 'utf8'),
    }),
    edit: tool({
      description: 'Replaces a text in a file.',
      inputSchema: z.object({path: z.string(), old: z.string(), new: z.string()}),
      execute: async (edit) => {
        const text = await readFile(edit.path, 'utf8');
        if (!text.includes(edit.old)) return {error: 'There is no such text.'};
        await writeFile(edit.path, text.replace(edit.old, edit.new));
        return {replaced: 1};
      },
    }),
  },
});

async function respond(messages) {
  const result = await agent.stream({messages});
  let failure;
  const parts = [];
  for await (const part of result.fullStream) {
    if (part.type === 'error') failure = part.error;
    parts.push(part.type);
  }
  if (failure !== undefined) throw failure;
  return {text: await result.text, messages: (await result.response).messages,
          usage: await result.totalUsage, parts};
}

let messages = [];
const answers = [];
const pruned = [];
for (const content of requests) {
  messages.push({role: 'user', content});
  let result;
  try {
    result = await respond(messages);
  } catch (error) {
    const tooLong = /prompt is too long|maximum context length/;
    if (!APICallError.isInstance(error) || !tooLong.test(error.message)) throw error;
    pruned.push({status: error.statusCode, message: error.message});
    messages = pruneMessages({messages, toolCalls: 'all', emptyMessages: 'remove'});
    result = await respond(messages);
  }
  messages.push(...result.messages);
  answers.push({text: result.text, usage: result.usage});
}
console.log(JSON.stringify({answers, pruned}));
