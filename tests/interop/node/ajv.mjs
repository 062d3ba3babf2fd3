// Compiles JSON Schemas of 2020-12 with ajv in strict mode, and says which values they allow.
//
// On stdin, JSON: [{name, schema, values}]. On stdout: {name: {fault: string or null, allowed: [true, ...]}}.

import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import { text } from "node:stream/consumers";

let complaints = [];
const complain = (message) => complaints.push(message);

const ajv = new Ajv2020({
  strict: true,
  strictTypes: true,
  strictTuples: true,
  strictRequired: true,
  logger: { log() {}, warn: complain, error: complain },
});
addFormats(ajv);
// Known to Python's libraries, not to ajv.
ajv.addFormat("path", true);
ajv.addFormat("decimal", /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/);

const answers = {};
for (const { name, schema, values } of JSON.parse(await text(process.stdin))) {
  complaints = [];
  try {
    const validate = ajv.compile(schema);
    answers[name] = { fault: complaints[0] ?? null, allowed: values.map((value) => validate(value)) };
  } catch (error) {
    answers[name] = { fault: String(error), allowed: [] };
  }
}
process.stdout.write(JSON.stringify(answers));
