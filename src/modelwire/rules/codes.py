"""Which error code may go to which peer.

"Implementations MUST NOT emit any code from this sub-range [-32020 to -32099] that is not defined by this
specification", "new implementations SHOULD NOT use codes from [-32000 to -32019] at all" (2026-07-28, basic, Error
Codes). This module only decides; the dispatcher sends.
"""

from __future__ import annotations

from modelwire.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    MISSING_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_REVISION,
    URL_ELICITATION_REQUIRED,
    NotFound,
    RpcError,
)
from modelwire.protocol.revisions import Revision

_RESERVED = range(-32099, -31999)
_DEFINED = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION})


def code_for(error: RpcError, revision: Revision) -> int:
    """Return the code that an error is sent with under a revision.

    A missing resource is ``-32002`` on handshake revisions and ``-32602`` from 2026-07-28 on. A reserved code that the
    revision does not define becomes ``-32603``.
    """
    code = error.code
    if code == RESOURCE_NOT_FOUND or (isinstance(error, NotFound) and error.uri is not None):
        return revision.resource_not_found_code
    if code == URL_ELICITATION_REQUIRED:
        return code if revision.covers("2025-11-25", "2025-11-25") else INTERNAL_ERROR
    if code in _RESERVED and (revision.handshake or code not in _DEFINED):
        return INTERNAL_ERROR
    return code
