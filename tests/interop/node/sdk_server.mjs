// A server on version 2 of the JavaScript SDK, over HTTP, in both eras; it prints its URL.
//
// 2026-07-28 is answered request by request, and older revisions keep sessions of their own, as its documents teach it.

import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from "@modelcontextprotocol/node";
import {
  McpServer,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  isLegacyRequest,
} from "@modelcontextprotocol/server";

const text = (said) => ({ content: [{ type: "text", text: said }] });
const numbers = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } };
const guests = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] };
const question = { message: "How many guests?", requestedSchema: guests };

function make({ era } = { era: "legacy" }) {
  const server = new McpServer({ name: "made-with-sdk-2", version: "1.2.3" }, { capabilities: { logging: {} } });
  const tool = (name, schema, run) => server.registerTool(name, { inputSchema: fromJsonSchema(schema) }, run);
  tool("add", numbers, ({ a, b }) => text(String(a + b)));
  tool("steps", { type: "object" }, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [1, 2, 3]) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
    }
    return text("done");
  });
  tool("book", { type: "object" }, async (_, ctx) => {
    if (era === "legacy") {
      return text(`for ${(await ctx.mcpReq.elicitInput(question)).content.count}`);
    }
    const answer = inputResponse(ctx.mcpReq.inputResponses, "guests");
    if (answer.kind === "missing") {
      return inputRequired({ inputRequests: { guests: inputRequired.elicit(question) } });
    }
    return text(`for ${answer.content.count}`);
  });
  tool("wait", { type: "object" }, () => new Promise(() => {}));
  tool("change", { type: "object" }, () => {
    if (era === "legacy") {
      server.sendToolListChanged();
    } else {
      handler.notify.toolsChanged();
    }
    return text("changed");
  });
  return server;
}

const handler = createMcpHandler(make, { legacy: "reject" });
const modern = toNodeHandler(handler);
const sessions = new Map();

async function legacy(request, response, body) {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    if (body?.method !== "initialize") {
      return response.writeHead(404).end();
    }
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await make().connect(transport);
  }
  await transport.handleRequest(request, response, body);
}

const listening = createServer(async (request, response) => {
  const probe = await toWebRequest(request);
  const body = request.method === "POST" ? await probe.clone().json() : undefined;
  await ((await isLegacyRequest(probe, body)) ? legacy : modern)(request, response, body);
});
listening.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));
