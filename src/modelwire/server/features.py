"""Everything that one server offers, joined: registries, routes, capabilities, and who is told of changes.

Server-side features meet here and nowhere else. Nothing in this file knows a transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from modelwire.errors import ConfigError, SignatureError
from modelwire.log import log as _log
from modelwire.protocol import jsonrpc, wire
from modelwire.protocol import types as t
from modelwire.protocol.jsonrpc import Notification
from modelwire.protocol.methods import METHODS, Method
from modelwire.protocol.revisions import LATEST_HANDSHAKE
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Route
from modelwire.rules.subscriptions import LISTS
from modelwire.server.caching import Caching, ListKind
from modelwire.server.context import Context
from modelwire.server.directories import Directory, Source
from modelwire.server.file_lists import FileLists
from modelwire.server.functions import positional_count, run_sync, threads_for
from modelwire.server.later import Later
from modelwire.server.lifespan import Companion, Lifespan, Running
from modelwire.server.opening import Opening
from modelwire.server.parking import Lot, Parking, asking
from modelwire.server.prompts import Completions, PromptEntry, Prompts
from modelwire.server.registry import Registry
from modelwire.server.resources import ResourceEntry, Resources, TemplateEntry
from modelwire.server.sealing import KeyRing
from modelwire.server.signature import waits_for_a_name
from modelwire.server.subscriptions import Hub, Listeners, SessionSubscriber, subscribe, unsubscribe
from modelwire.server.switches import Kind, Switches
from modelwire.server.tools import ToolEntry, Tools
from modelwire.server.visibility import Visibility
from modelwire.server.watching import require
from modelwire.server.workers import WorkerPool

_INITIALIZED = frozenset({"notifications/initialized", "initialized"})
"""The second is what diagrams abbreviate the first to, and what people then type."""


class Features:
    """What a server offers.

    Args:
        info: Who the server is.
        identity: The same as JSON, for stamped results.
        instructions: How a model should use it.
        page_size: Items per page of a list.
        caching: How clients may keep each list, and what ``server/discover`` says.
        max_result: The most bytes that the result of a tool, resource or prompt may have; None for any number.
        declare: Features to declare although nothing is registered for them.
        extensions: Extensions supported.
        experimental: Non-standard capabilities.
        lifespan: What lives as long as the server serves.
        parking: How many handlers may wait for answers.
        state_keys: What seals the states of those that ask.
    """

    def __init__(
        self,
        info: t.Implementation,
        identity: bytes,
        *,
        instructions: str | None,
        page_size: int | None,
        caching: Mapping[ListKind, Caching],
        max_result: int | None,
        declare: frozenset[str],
        extensions: dict[str, dict[str, Any]] | None,
        experimental: dict[str, dict[str, Any]] | None,
        lifespan: Lifespan,
        parking: Parking,
        state_keys: KeyRing | None,
    ) -> None:
        self.lifespan = lifespan
        self._parking = parking
        self._state_keys = state_keys
        self._name = info.name
        self.companions: list[Companion] = []
        """What runs beside the lifespan while the server serves: each is called with the server and returns an async
        context manager, entered after the lifespan and left before it, in the same task. Append before serving."""
        self._declare = declare
        self._extensions = extensions
        self._experimental = experimental
        self.later = Later()
        self.hub = Hub()
        self.listeners = Listeners(self.hub, self._declared_lists, self._concealed)
        self._sessions: dict[Connection, SessionSubscriber] = {}
        self._notices: dict[str, Callable[[Connection, Notification], object]] = {}
        common: dict[str, Any] = {"page_size": page_size, "server_info": identity}
        self.tools = Tools(
            Registry[ToolEntry](
                "tool",
                definition=lambda entry: entry.tool,
                result=lambda items, cursor: t.ListToolsResult(items, next_cursor=cursor),
                caching=caching["tools"],
                changed=lambda: self.changed("tools"),
                **common,
            ),
            max_result,
        )
        self.resources = Resources(
            Registry[ResourceEntry](
                "resource",
                definition=lambda entry: entry.resource,
                result=lambda items, cursor: t.ListResourcesResult(items, next_cursor=cursor),
                caching=caching["resources"],
                changed=lambda: self.changed("resources"),
                **common,
            ),
            Registry[TemplateEntry](
                "resource template",
                definition=lambda entry: entry.template,
                result=lambda items, cursor: t.ListResourceTemplatesResult(items, next_cursor=cursor),
                caching=caching["templates"],
                changed=lambda: self.changed("resources"),
                **common,
            ),
            max_result,
        )
        self.prompts = Prompts(
            Registry[PromptEntry](
                "prompt",
                definition=lambda entry: entry.prompt,
                result=lambda items, cursor: t.ListPromptsResult(items, next_cursor=cursor),
                caching=caching["prompts"],
                changed=lambda: self.changed("prompts"),
                **common,
            ),
            max_result,
        )
        self.completions = Completions(self.prompts, self.resources, max_result)
        self.switches = Switches(
            {
                "tool": lambda: [self.tools.registry],
                "prompt": lambda: [self.prompts.registry],
                "resource": lambda: self.resources.collections,
            }
        )
        opening = Opening(info, self.capabilities, instructions, caching["discover"])
        self.routes: dict[str, Route] = {route.method.name: route for route in [*opening.routes(), *self._routes()]}

    def _routes(self) -> list[Route]:
        return [
            Route(METHODS["tools/list"], self.tools.registry.page, t.PaginatedRequestParams, immediate=True),
            Route(METHODS["tools/call"], asking(self.tools.call), t.CallToolRequestParams, now=self.tools.now),
            Route(METHODS["resources/list"], self.resources.fixed.page, t.PaginatedRequestParams, immediate=True),
            Route(
                METHODS["resources/templates/list"],
                self.resources.templates.page,
                t.PaginatedRequestParams,
                immediate=True,
            ),
            Route(METHODS["resources/read"], asking(self.resources.read), t.ReadResourceRequestParams),
            Route(METHODS["resources/subscribe"], self._subscribe, t.SubscribeRequestParams, immediate=True),
            Route(METHODS["resources/unsubscribe"], unsubscribe, t.UnsubscribeRequestParams, immediate=True),
            Route(METHODS["prompts/list"], self.prompts.registry.page, t.PaginatedRequestParams, immediate=True),
            Route(METHODS["prompts/get"], asking(self.prompts.get), t.GetPromptRequestParams),
            Route(METHODS["completion/complete"], self.completions.complete, t.CompleteRequestParams),
            Route(
                METHODS["subscriptions/listen"],
                self.listeners.listen,
                t.SubscriptionsListenRequestParams,
                lasts=self.listeners.begin,
            ),
        ]

    def add_files(self, source: Source, pool: WorkerPool, seen: Visibility) -> None:
        """Register a file or a directory.

        Args:
            source: The file or directory.
            pool: The threads that the disk is looked at in.
            seen: For whom it is there.

        Raises:
            ConfigError: There is a resource under that URI already.
        """
        resources = self.resources
        if resources.files is None:
            resources.files = FileLists(resources.fixed, pool)
            listing = self.routes["resources/list"]
            if listing.handle == resources.fixed.page:  # and not a handler of the user's own
                self.routes["resources/list"] = Route(listing.method, resources.page, listing.params)
        resources.files.take(source, seen)

    def add_watched(self, directory: Directory, pool: WorkerPool, seen: Visibility) -> None:
        """Register a directory as `add_files` does, and have clients told of its changes while the server serves.

        Raises:
            ConfigError: As `add_files`, or the library for it is not installed.
        """
        require()
        self.add_files(directory, pool, seen)
        files = self.resources.files
        assert files is not None
        self.companions.append(lambda server: files.watching(directory, self.changed))

    def new_lot(self, pool: WorkerPool) -> Lot:
        """Return a place for handlers that wait for answers, in the running event loop.

        Args:
            pool: The threads for what they do once.
        """
        return Lot(self._name, self._parking, self._state_keys, self._may_replay, pool)

    def share_states(self, keys: KeyRing) -> None:
        """Have states sealed with keys that other processes have, too; a server with keys of its own keeps those."""
        if self._state_keys is None:
            self._state_keys = keys

    def _may_replay(self, call: Call) -> bool:
        return call.method.name != "tools/call" or self.tools.may_replay(call.params.name)

    # ------------------------------------------------------------------ capabilities

    def _has(self) -> frozenset[str]:
        found = set(self._declare)
        if len(self.tools.registry):
            found.add("tools")
        if len(self.resources.fixed) or len(self.resources.templates) or self.resources.files:
            found.add("resources")
        if len(self.prompts.registry):
            found.add("prompts")
        if self.completions:
            found.add("completions")
        return frozenset(found)

    def _declared_lists(self) -> frozenset[str]:
        return self._has() & frozenset(LISTS)

    def capabilities(self) -> t.ServerCapabilities:
        """Return what the server can do at this moment."""
        has = self._has()
        return t.ServerCapabilities(
            logging={},
            tools=t.ListChangedCapability(list_changed=True) if "tools" in has else None,
            prompts=t.ListChangedCapability(list_changed=True) if "prompts" in has else None,
            resources=t.ResourcesCapability(subscribe=True, list_changed=True) if "resources" in has else None,
            completions={} if "completions" in has else None,
            extensions=self._extensions,
            experimental=self._experimental,
        )

    # ------------------------------------------------------------------ what is registered, and who may see it

    @property
    def serving(self) -> bool:
        """Whether there is a client at this moment, so that nothing can wait any more."""
        return bool(self._sessions)

    def add(self, registry: Registry[Any], key: str, seen: Visibility, build: Callable[[], Any]) -> None:
        """Register an item.

        Args:
            registry: Where it belongs.
            key: Its name there.
            seen: For whom it is there.
            build: Makes it. Called again when the server is first needed, if all that is wrong is an undefined name.

        Raises:
            SignatureError: It cannot be made.
            ConfigError: There is one of that name already.
        """
        try:
            item = build()
        except SignatureError as error:
            self._refuse_unless_it_waits(error)
            serial = registry.add(key, None, seen)
            self.later.add(lambda: registry.waits(key, serial) and registry.fill(key, serial, build()))
        else:
            registry.add(key, item, seen)

    def attempt(self, register: Callable[[], object]) -> None:
        """Register something that has no place in a list; again when the server is first needed, as `add` would."""
        try:
            register()
        except SignatureError as error:
            self._refuse_unless_it_waits(error)
            self.later.add(register)

    def _refuse_unless_it_waits(self, error: SignatureError) -> None:
        if self.serving or not waits_for_a_name(error):
            raise error

    def check(self, check: Callable[[], object]) -> None:
        """Look at something when all is registered, or at once where a client is there already."""
        if self.serving:
            check()
        else:
            self.later.check(check)

    def switch(self, on: bool, names: Sequence[str], kind: Kind | None, tags: Iterable[str]) -> None:
        """Switch items on or off, and tell clients of each list that changed, once."""
        for changed in self.switches.turn(on, names, kind, tags):
            self.changed(f"{changed}s")

    def _subscribe(self, call: Call) -> dict[str, Any]:
        return subscribe(call, bool(self._concealed([call.params.uri], call)))

    def _concealed(self, uris: Iterable[str], call: Call) -> frozenset[str]:
        return self.resources.concealed(uris, call)

    # ------------------------------------------------------------------ changes

    def changed(self, what: str) -> None:
        """Tell whoever wants to know that a list, or the resource of a URI, changed."""
        if what in LISTS:
            self.hub.changed("list", what)
        elif not self.resources.concealed([what]):
            self.hub.changed("resource", what)

    def attach(self, connection: Connection, announce_lists: bool, running: Running) -> None:
        """Have a connection's client told of changes, and its handlers use what the lifespan yields.

        Raises:
            SignatureError: Something that was registered lacks a name, and cannot wait any longer.
            ConfigError: Something that was registered cannot work.
        """
        self.later.settle()
        connection.shared = running
        subscriber = SessionSubscriber(connection, self._announcements if announce_lists else None)
        self._sessions[connection] = subscriber
        connection.session.on_ready = subscriber.kick
        self.hub.add(subscriber)

    def detach(self, connection: Connection) -> None:
        """Forget a connection."""
        subscriber = self._sessions.pop(connection, None)
        if subscriber is not None:
            self.hub.remove(subscriber)

    def _announcements(self, name: str) -> list[bytes]:
        """Return the frames that tutorials teach for a changed list; the standard notification goes out before them."""
        if name == "tools":
            items = t.ListToolsResult(self.tools.registry.definitions())
            return [jsonrpc.encode_notification("tools/list", wire.encode(items, LATEST_HANDSHAKE))]
        if name == "resources":
            items = t.ListResourcesResult(self.resources.fixed.definitions())
            return [
                jsonrpc.encode_notification("resources/list", wire.encode(items, LATEST_HANDSHAKE)),
                jsonrpc.encode_notification("notifications/root"),
            ]
        return []

    # ------------------------------------------------------------------ notifications and methods of users

    def notice(self, connection: Connection, notification: Notification, announce_lists: bool) -> None:
        """Take in a client's notification; unknown ones are ignored, as JSON-RPC has it."""
        handler = self._notices.get(notification.method)
        if handler is not None:
            handler(connection, notification)
        if connection.session.peer is not None:
            if notification.method in _INITIALIZED:
                self._initialized(connection, announce_lists)
            elif notification.method == "exit":
                connection.stop()
        subscriber = self._sessions.get(connection)
        if subscriber is not None:
            subscriber.kick()  # what was held back until the client had finished opening

    def _initialized(self, connection: Connection, announce_lists: bool) -> None:
        session = connection.session
        if session.initialized:
            return
        session.initialized = True
        for name in ("tools", "resources"):
            if announce_lists and name in session.declared:
                for frame in self._announcements(name):
                    connection.post(frame)

    def add_method(self, name: str, function: Callable[..., Any], pool: WorkerPool) -> None:
        """Register who answers a method, or takes in a notification; a sync function runs in the pool."""
        takes = positional_count(function, 2)
        threads = threads_for(function, pool)
        if name.startswith("notifications/"):

            def take_in(connection: Connection, note: Notification) -> None:
                if connection.callbacks.full:
                    connection.overheard(name)
                    return
                told = _notify(connection, note, lambda *given: run_sync(lambda: function(*given[:takes]), threads))
                connection.follow(told, 0 if note.params is UNSET else len(note.params))

            self._notices[name] = take_in
            return
        if name in ("initialize", "server/discover"):
            raise ConfigError(f"{name} opens the conversation and cannot be replaced")
        row = METHODS.get(name)
        known = row is not None and row.sender != "server"
        method = row if row is not None and known else Method(name, t.RequestParams, t.Result, "client")

        async def handle(call: Call) -> Any:
            params = _members(call.params)
            params.pop("_meta", None)  # ctx.meta has it
            given = (params, Context(call))[:takes]
            result: Any = await run_sync(lambda: function(*given), threads)
            if result is not None and not isinstance(result, dict | msgspec.Struct):
                raise TypeError(f"the handler of {name} returned a {type(result).__name__}; a result is an object")
            return cast(Any, result)

        self.routes[name] = Route(method, handle, None)


def _members(raw: Any) -> dict[str, Any]:
    found = msgspec.json.decode(raw)
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


async def _notify(connection: Connection, note: Notification, function: Callable[..., Awaitable[Any]]) -> None:
    params = {} if note.params is UNSET else _members(note.params)
    try:
        await function(params, connection.session.peer)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException:  # a SystemExit that leaves a task would end the whole loop
        _log.exception("the handler of %s failed", note.method)
