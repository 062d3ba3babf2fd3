// What each JavaScript client does with the server of tests/interop/server.py, and the JSON of what it saw.
//
// The plan comes on stdin, as for the Python clients (clients/walk.py), and the answers have the same names. A client
// program gives an adapter of its library:
//
//   about()                     {revision, server, instructions}
//   heard                       a Heard, told of everything that comes unasked
//   client                      lists, reads, prompts, completes: what both libraries have alike
//   pages()                     the tools, page by page; what was listed last is what results are validated by
//   call(name, args, options)   calls a tool
//   listen(uri)                 follows the tools and a resource; returns how to stop

import { text } from "node:stream/consumers";

const PATIENCE = 20_000;

export async function readPlan() {
  return JSON.parse(await text(process.stdin));
}

export function tell(seen) {
  process.stdout.write(JSON.stringify(seen));
}

export class Heard {
  logs = [];
  changes = new Set();
  changed = new Promise((resolve) => (this.bothHeard = resolve));

  log({ level, logger, data }) {
    this.logs.push([level, logger ?? null, data]);
  }

  change(what) {
    this.changes.add(what);
    if (this.changes.size === 2) this.bothHeard();
  }
}

function soon(promise, what) {
  const late = new Promise((_, reject) => setTimeout(reject, PATIENCE, new Error(`${what} did not come`)).unref());
  return Promise.race([promise, late]);
}

async function refused(request) {
  try {
    return ["accepted", JSON.stringify(await request)];
  } catch (error) {
    return [error.code, error.message, error.data ?? null];
  }
}

async function called(adapter, name, args) {
  try {
    const result = await adapter.call(name, args);
    return { content: result.content, structured: result.structuredContent ?? null, error: result.isError ?? false };
  } catch (error) {
    return { fault: String(error.stack) };
  }
}

async function tools(adapter, calls) {
  const seen = { tools: [], tool_pages: 0, calls: {} };
  for await (const page of adapter.pages()) {
    seen.tool_pages += 1;
    for (const { name } of page) {
      seen.tools.push(name);
      if (name in calls) seen.calls[name] = await called(adapter, name, calls[name]);
    }
  }
  return seen;
}

async function lists({ client }) {
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const { prompts } = await client.listPrompts();
  return {
    resources: Object.fromEntries(resources.map(({ uri, mimeType }) => [uri, mimeType])),
    templates: resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    prompts: prompts.map((one) => [one.name, one.title, one.arguments.map((a) => [a.name, a.required])]),
  };
}

async function refusals({ client, call }) {
  return {
    deny: await refused(call("deny", {})),
    "unknown tool": await refused(call("dance", {})),
    "unknown resource": await refused(client.readResource({ uri: "elsewhere://x" })),
    "missing resource": await refused(client.readResource({ uri: "notes://nobody" })),
    "unknown prompt": await refused(client.getPrompt({ name: "dance" })),
    "missing argument": await refused(client.getPrompt({ name: "greet" })),
  };
}

async function reading({ client }) {
  const read = {};
  for (const uri of ["notes://all", "notes://pixel", "notes://ada"]) {
    read[uri] = (await client.readResource({ uri })).contents;
  }
  const greeting = await client.getPrompt({ name: "greet", arguments: { person: "Ada", tone: "formal" } });
  const ref = { type: "ref/prompt", name: "greet" };
  const argument = { name: "person", value: "A" };
  const rudely = { ref, argument, context: { arguments: { tone: "rude" } } };
  return {
    read,
    prompt: [greeting.messages[0].role, greeting.messages[0].content.text],
    completed: (await client.complete({ ref, argument })).completion.values,
    "completed rudely": (await client.complete(rudely)).completion.values,
  };
}

async function progressing({ call, heard }) {
  const progress = [];
  const hurried = [];
  heard.logs.length = 0;
  const goingOn = [];
  const onprogress = (step) => {
    progress.push([step.progress, step.total ?? null, step.message ?? null]);
    goingOn.push(call("go_on", {}));
  };
  const done = await call("steps", { count: 3 }, { onprogress });
  await Promise.all(goingOn);
  await call("hurry", {}, { onprogress: (step) => hurried.push(step.progress) });
  return { progress, hurried, logs: [...heard.logs], done: done.content[0].text };
}

// Gives a call up in the middle, and sees how many the server knows to be given up.
async function cancelling({ call }) {
  const giveUp = new AbortController();
  const onprogress = () => giveUp.abort("enough");
  await call("stall", {}, { onprogress, signal: giveUp.signal }).catch(() => {});
  for (;;) {
    const count = (await call("cancelled", {})).content[0].text;
    if (count !== "0") return count;
  }
}

async function changing(adapter) {
  const stop = await adapter.listen("notes://ada");
  await adapter.call("change", {});
  await soon(adapter.heard.changed, "the news of both changes");
  await stop();
  const { tools: names } = await tools(adapter, {});
  return { changes: [...adapter.heard.changes].sort(), new: names.includes("new") };
}

export async function walk(adapter, plan) {
  const seen = { ...adapter.about(), ...(await lists(adapter)), ...(await tools(adapter, plan.calls)) };
  if (!plan.whole) return seen;
  seen.refused = await refusals(adapter);
  Object.assign(seen, await reading(adapter), await progressing(adapter));
  seen.cancelled = await cancelling(adapter);
  seen.booked = (await adapter.call("book", { hotel: "Ritz" })).content[0].text;
  return { ...seen, ...(await changing(adapter)) };
}
