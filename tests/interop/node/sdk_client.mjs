// A client on version 1 of the JavaScript SDK, which speaks handshake revisions only.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { Heard, readPlan, tell, walk } from "./walk.mjs";

const welcome = { role: "assistant", content: { type: "text", text: "Welcome!" }, model: "none" };
const plan = await readPlan();
const [command, ...args] = plan.server;
const heard = new Heard();
const client = new Client(
  { name: "sdk-client", version: "0" },
  { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } },
);
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { count: 3 } }));
client.setRequestHandler(CreateMessageRequestSchema, () => welcome);
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home" }] }));
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => heard.log(params));
client.setNotificationHandler(ToolListChangedNotificationSchema, () => heard.change("tools"));
client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard.change(params.uri));

const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command, args, env: plan.env });
let revision;
transport.setProtocolVersion = (agreed) => (revision = agreed); // called once the revision is agreed on
await client.connect(transport);
const { name, version, title } = client.getServerVersion();

tell(
  await walk(
    {
      client,
      heard,
      about: () => ({
        revision,
        server: [name, version, title],
        instructions: client.getInstructions(),
      }),
      async *pages() {
        let cursor;
        do {
          const page = await client.listTools(cursor === undefined ? {} : { cursor });
          yield page.tools;
          cursor = page.nextCursor;
        } while (cursor !== undefined);
      },
      call: (tool, given, options) => client.callTool({ name: tool, arguments: given }, undefined, options),
      async listen(uri) {
        await client.subscribeResource({ uri });
        return () => client.unsubscribeResource({ uri });
      },
    },
    plan,
  ),
);
await client.close();
