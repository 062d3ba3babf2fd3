// A client on version 2 of the JavaScript SDK, in either era.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Heard, readPlan, tell, walk } from "./walk.mjs";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
const welcome = { role: "assistant", content: { type: "text", text: "Welcome!" }, model: "none" };
const plan = await readPlan();
const [command, ...args] = plan.server;
const heard = new Heard();
const mode = plan.mode.startsWith("20") ? { pin: plan.mode } : plan.mode;
const client = new Client(
  { name: "client", version: "0" },
  { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} }, versionNegotiation: { mode } },
);
client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { count: 3 } }));
client.setRequestHandler("sampling/createMessage", () => welcome);
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///home" }] }));
client.setNotificationHandler("notifications/message", ({ params }) => heard.log(params));
client.setNotificationHandler("notifications/tools/list_changed", () => heard.change("tools"));
client.setNotificationHandler("notifications/resources/updated", ({ params }) => heard.change(params.uri));

const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command, args, env: plan.env });
await client.connect(transport);
const { name, version, title } = client.getServerVersion();
const legacy = client.getProtocolEra() === "legacy";

tell(
  await walk(
    {
      client,
      heard,
      about: () => ({
        revision: client.getNegotiatedProtocolVersion(),
        server: [name, version, title],
        instructions: client.getInstructions(),
      }),
      // It follows the pages by itself.
      async *pages() {
        yield (await client.listTools()).tools;
      },
      call(tool, given, options) {
        const meta = legacy ? {} : { _meta: { [LOG_LEVEL]: "info" } };
        return client.callTool({ name: tool, arguments: given, ...meta }, options);
      },
      async listen(uri) {
        if (legacy) {
          await client.subscribeResource({ uri });
          return () => client.unsubscribeResource({ uri });
        }
        const listening = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
        return () => listening.close();
      },
    },
    plan,
  ),
);
await client.close();
