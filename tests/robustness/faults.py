"""What a server can do wrong, and when: one table for servers in memory and for processes.

A fault is a piece of Python that runs inside the server of `tests.fake_server.child`, where ``request`` is what was
asked last, or None. It returns whether it has answered that itself. What must become of the client is said in one word:

    fine     nothing: the fault costs only itself
    exits    the process has ended: `ServerExited`, with its code
    lost     the connection has ended: `ConnectionLost`
    late     no answer comes: `RequestTimeout`; the server says "now" on stderr when it has come to that
    deaf     the process reads no more: `ConnectionLost` when that shows, else `RequestTimeout`; it says "now", too
    wrong    the answer breaks a rule: `ProtocolViolation`
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        outcome: What becomes of the client, in one of the words above.
        code: What the server does.
        words: What people must read, where there is an error.
        answers: Whether it is the answer to a request, and nothing without one.
    """

    outcome: str
    code: str
    words: str = ""
    answers: bool = False


FAULTS: dict[str, Fault] = {
    "exits with a code": Fault(
        "exits", "complain('no space left'); os._exit(3)", r"exited with code 3[^$]*no space left"
    ),
    "is killed by a signal": Fault("exits", "os.kill(os.getpid(), 9)", r"was ended by SIGKILL \(signal 9\)"),
    "closes stdout and lives on": Fault(
        "lost", "os.close(1); wait()", "closed its stdout, although its process still runs"
    ),
    "closes stdin and lives on": Fault(
        "deaf", "os.close(0); complain('now'); wait()", "its reader is gone|the server's process is running"
    ),
    "falls silent": Fault(
        "late", "complain('now'); wait()", "nothing was heard meanwhile; the server's process is running"
    ),
    "says half a line and falls silent": Fault(
        "late",
        """write(b'{"jsonrpc":'); complain('now'); wait()""",
        """the beginning of a line, '{"jsonrpc":', without its end""",
    ),
    "says half a line and exits": Fault("exits", """write(b'{"jsonrpc":'); os._exit(0)""", "exited with code 0"),
    "prints a line": Fault("fine", r"write(b'[INFO] 100% {ready}\n')"),
    "prints no UTF-8": Fault("fine", r"write(b'\xff\xfe \x00 bad\n')"),
    "prints a giant line": Fault("fine", r"write(b'#' * 200_000 + b'\n')"),
    "answers nobody": Fault("fine", 'say({"jsonrpc": "2.0", "id": 4711, "result": {}})'),
    "complains to nobody": Fault("fine", 'say({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "?"}})'),
    "floods with notifications": Fault(
        "fine", 'write(b\'{"jsonrpc":"2.0","method":"notifications/message","params":{}}\\n\' * 5000)'
    ),
    "floods stderr": Fault("fine", "sys.stderr.write('x' * 500_000); sys.stderr.flush()"),
    "drips": Fault("fine", "return answer(request, drip)", answers=True),
    "answers twice": Fault("fine", "answer(request); return answer(request)", answers=True),
    "answers with a result and an error": Fault(
        "wrong",
        'return say({**right(request), "error": {"code": 1, "message": "?"}}) or True',
        "never both",
        answers=True,
    ),
    "answers with a number": Fault(
        "wrong", 'return say({**right(request), "result": 5}) or True', "is invalid", answers=True
    ),
}
MOMENTS = (
    "before any byte", "before the answer to the probe", "before the answer to initialize", "between two calls",
    "during a call", "during the second page of a list", "during a listening", "when its input ends",
)  # fmt: skip

SERVER = r"""
FAULT_MOMENT, ERA, MARK = sys.argv[1:4]
met = False
def drip(frame):
    for number in range(len(frame)):
        write(frame[number:number + 1])
def right(request):
    return {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS[request["method"]](request)}
def answer(request, put=write):
    put(json.dumps(right(request)).encode() + b"\n")
    return True
def fault(request):
    FAULT
def at(moment, request=None):
    # Once in each life, and with a mark only in the first one.
    global met
    if moment != FAULT_MOMENT or met or (MARK and os.path.exists(MARK)):
        return False
    met = True
    if MARK:
        open(MARK, "x").close()
    return fault(request)
def page(request):
    more = (request.get("params") or {}).get("cursor") is None
    tool = {"name": "one" if more else "two", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}}
    return {"tools": [tool], "ttlMs": 0, "cacheScope": "private", **({"nextCursor": "2"} if more else {})}
TAG = "io.modelcontextprotocol/subscriptionId"
RESULTS = {
    "server/discover": lambda request: {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                                        "capabilities": {"tools": {"listChanged": True}}, "ttlMs": 0,
                                        "cacheScope": "private"},
    "initialize": lambda request: {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                                   "serverInfo": {"name": "faulty", "version": "0"}},
    "ping": lambda request: {},
    "tools/call": lambda request: {"content": [{"type": "text", "text": "done"}]},
    "tools/list": page,
    "subscriptions/listen": lambda request: {"resultType": "complete", "_meta": {TAG: request["id"]}},
}
def moment_of(request):
    if request["method"] == "tools/list":
        return "during the second page of a list" if "cursor" in (request.get("params") or {}) else None
    return {"server/discover": "before the answer to the probe", "initialize": "before the answer to initialize",
            "tools/call": "during a call"}.get(request["method"])
def acknowledge(request):
    params = {"_meta": {TAG: request["id"]}}
    say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
         "params": {**params, "notifications": {"toolsListChanged": True}}})
    if not at("during a listening", request):
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params})
at("before any byte")
while (request := read()) is not None:
    if "id" not in request:
        continue
    if at(moment_of(request), request):
        continue
    if request["method"] == "subscriptions/listen":
        acknowledge(request)
    elif request["method"] == "server/discover" and ERA == "handshake":
        error(request)
    else:
        answer(request)
        if request["method"] == "ping":
            at("between two calls")
at("when its input ends")
"""


def script(fault: Fault) -> str:
    """Return the program of a server that does something wrong; its arguments are the moment, the era and a mark."""
    return SERVER.replace("    FAULT\n", "".join(f"    {line}\n" for line in fault.code.split("; ")), 1)
