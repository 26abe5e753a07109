// Of each of zod's types of texts and numbers: the schema that it writes, and which of the texts on
// standard input, a JSON array, it takes. Prints one JSON object.
import { readFileSync } from "node:fs";
import * as z from "zod";

const texts = JSON.parse(readFileSync(0, "utf8"));
const types = {
  string: z.string(), email: z.email(), url: z.url(), httpUrl: z.httpUrl(), uuid: z.uuid(),
  uuidv4: z.uuidv4(), uuidv6: z.uuidv6(), uuidv7: z.uuidv7(), guid: z.guid(),
  hostname: z.hostname(), emoji: z.emoji(), base64: z.base64(), base64url: z.base64url(),
  hex: z.hex(), jwt: z.jwt(), nanoid: z.nanoid(), cuid: z.cuid(), cuid2: z.cuid2(),
  ulid: z.ulid(), xid: z.xid(), ksuid: z.ksuid(), ipv4: z.ipv4(), ipv6: z.ipv6(), mac: z.mac(),
  cidrv4: z.cidrv4(), cidrv6: z.cidrv6(), e164: z.e164(), sha256: z.hash("sha256"),
  date: z.iso.date(), time: z.iso.time(), datetime: z.iso.datetime(),
  duration: z.iso.duration(), int: z.int(), int32: z.int32(), uint32: z.uint32(),
  float32: z.float32(), number: z.number(), lowercase: z.string().lowercase(),
  startsWith: z.string().startsWith("a"), includes: z.string().includes("b"),
  regex: z.string().regex(/^a+$/),
  template: z.templateLiteral(["a", z.number(), "-", z.enum(["x"])]),
};
const answer = {};
for (const [name, type] of Object.entries(types)) {
  answer[name] = { schema: z.toJSONSchema(type),
                   taken: texts.map((text) => type.safeParse(text).success) };
}
answer.all = { schema: z.toJSONSchema(z.object(types)), taken: texts.map(() => false) };
console.log(JSON.stringify(answer));
