"""modelwire: servers and clients for the Model Context Protocol, on every revision.

The public names, and nothing else. Each is loaded when it is first used: a client needs no server, and ``mw --help``
needs neither.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from modelwire.version import __version__

if TYPE_CHECKING:
    from modelwire.client import answers
    from modelwire.client.cache import Cache
    from modelwire.client.client import Client
    from modelwire.client.group import Group
    from modelwire.client.group_listening import GroupEvent
    from modelwire.client.listening import Missed, PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
    from modelwire.client.questions import FormQuestion, Reply, SampleQuestion, UrlQuestion
    from modelwire.errors import (
        CapabilityRequired,
        ConfigError,
        ConnectionFailed,
        ConnectionLost,
        Declined,
        Dismissed,
        FrameTooLarge,
        HttpFailed,
        InvalidParams,
        LocalError,
        MethodNotFound,
        MissingCapability,
        ModelwireError,
        NotFound,
        PeerError,
        ProtocolViolation,
        RequestCancelled,
        RequestTimeout,
        ResourceNotFound,
        RpcError,
        ServerExited,
        SignatureError,
        ToolError,
        Unanswered,
        UnsupportedRevision,
        UrlElicitationNeeded,
        UrlElicitationRequired,
        WrongResult,
    )
    from modelwire.protocol import types
    from modelwire.rpc.observer import Observer
    from modelwire.server.annotations import Header, Name
    from modelwire.server.ask import Ask
    from modelwire.server.context import Context
    from modelwire.server.dependencies import Depends
    from modelwire.server.forms import form_schema
    from modelwire.server.media import Audio, EmbeddedResource, Image, ResourceLink, Text
    from modelwire.server.parking import Parking
    from modelwire.server.paths import safe_join
    from modelwire.server.server import Server
    from modelwire.server.titles import Titles

__all__ = [
    "Ask",
    "Audio",
    "Cache",
    "CapabilityRequired",
    "Client",
    "ConfigError",
    "ConnectionFailed",
    "ConnectionLost",
    "Context",
    "Declined",
    "Depends",
    "Dismissed",
    "EmbeddedResource",
    "FormQuestion",
    "FrameTooLarge",
    "Group",
    "GroupEvent",
    "Header",
    "HttpFailed",
    "Image",
    "InvalidParams",
    "LocalError",
    "MethodNotFound",
    "Missed",
    "MissingCapability",
    "ModelwireError",
    "Name",
    "NotFound",
    "Observer",
    "Parking",
    "PeerError",
    "PromptsChanged",
    "ProtocolViolation",
    "Reply",
    "RequestCancelled",
    "RequestTimeout",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceUpdated",
    "ResourcesChanged",
    "RpcError",
    "SampleQuestion",
    "Server",
    "ServerExited",
    "SignatureError",
    "Text",
    "Titles",
    "ToolError",
    "ToolsChanged",
    "Unanswered",
    "UnsupportedRevision",
    "UrlElicitationNeeded",
    "UrlElicitationRequired",
    "UrlQuestion",
    "WrongResult",
    "__version__",
    "answers",
    "form_schema",
    "safe_join",
    "types",
]

_ELSEWHERE = {
    "Ask": "modelwire.server.ask",
    "Audio": "modelwire.server.media",
    "Cache": "modelwire.client.cache",
    "Client": "modelwire.client.client",
    "Context": "modelwire.server.context",
    "Depends": "modelwire.server.dependencies",
    "EmbeddedResource": "modelwire.server.media",
    "Group": "modelwire.client.group",
    "FormQuestion": "modelwire.client.questions",
    "GroupEvent": "modelwire.client.group_listening",
    "Header": "modelwire.server.annotations",
    "Image": "modelwire.server.media",
    "Missed": "modelwire.client.listening",
    "Name": "modelwire.server.annotations",
    "Observer": "modelwire.rpc.observer",
    "Parking": "modelwire.server.parking",
    "PromptsChanged": "modelwire.client.listening",
    "Reply": "modelwire.client.questions",
    "ResourceLink": "modelwire.server.media",
    "ResourceUpdated": "modelwire.client.listening",
    "ResourcesChanged": "modelwire.client.listening",
    "SampleQuestion": "modelwire.client.questions",
    "Server": "modelwire.server.server",
    "Text": "modelwire.server.media",
    "Titles": "modelwire.server.titles",
    "ToolsChanged": "modelwire.client.listening",
    "UrlQuestion": "modelwire.client.questions",
    "form_schema": "modelwire.server.forms",
    "safe_join": "modelwire.server.paths",
}
"""Where the names are that are no error."""

_MODULES = {"answers": "modelwire.client.answers", "types": "modelwire.protocol.types"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'modelwire' has no attribute {name!r}")
    if name in _MODULES:
        found = importlib.import_module(_MODULES[name])
    else:
        found = getattr(importlib.import_module(_ELSEWHERE.get(name, "modelwire.errors")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
