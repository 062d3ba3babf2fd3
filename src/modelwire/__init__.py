"""modelwire: servers and clients for the Model Context Protocol, on every revision.

The public names, and nothing else.
"""

from __future__ import annotations

from modelwire.client.client import Client
from modelwire.client.listening import PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from modelwire.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    FrameTooLarge,
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
    UnsupportedRevision,
)
from modelwire.protocol import types
from modelwire.rpc.observer import Observer
from modelwire.server.context import Context
from modelwire.server.server import Server
from modelwire.version import __version__

__all__ = [
    "Client",
    "ConfigError",
    "ConnectionFailed",
    "ConnectionLost",
    "Context",
    "FrameTooLarge",
    "InvalidParams",
    "LocalError",
    "MethodNotFound",
    "MissingCapability",
    "ModelwireError",
    "NotFound",
    "Observer",
    "PeerError",
    "PromptsChanged",
    "ProtocolViolation",
    "RequestCancelled",
    "RequestTimeout",
    "ResourceNotFound",
    "ResourceUpdated",
    "ResourcesChanged",
    "RpcError",
    "Server",
    "ServerExited",
    "SignatureError",
    "ToolError",
    "ToolsChanged",
    "UnsupportedRevision",
    "__version__",
    "types",
]
