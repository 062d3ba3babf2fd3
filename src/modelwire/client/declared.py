"""What a client declares that it can be asked, and whether that covers a question. Pure decisions."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import Revision


def declared(
    given: t.ClientCapabilities, *, forms: bool, pages: bool, messages: bool, roots: bool
) -> t.ClientCapabilities:
    """Return capabilities with what there is somebody to answer for.

    Args:
        given: What is to be declared besides.
        forms: Whether forms are filled in.
        pages: Whether pages are opened.
        messages: Whether a model writes messages.
        roots: Whether there are roots.
    """
    found = structs.replace(given)
    if forms or pages:
        old = given.elicitation or t.ElicitationCapability()
        # "an empty capabilities object is equivalent to declaring support for form mode only"
        forms = forms or (given.elicitation is not None and old.form is None and old.url is None)
        found.elicitation = t.ElicitationCapability(form=_either(old.form, forms), url=_either(old.url, pages))
    if messages and given.sampling is None:
        found.sampling = t.SamplingCapability()
    if roots:
        found.roots = t.RootsCapability(list_changed=True)
    return found


def in_revision(capabilities: t.ClientCapabilities, revision: Revision) -> t.ClientCapabilities:
    """Return what of a client's capabilities can be declared on a revision.

    An ``elicitation`` that is for pages only would say "forms" where the revision has no modes.
    """
    asks = capabilities.elicitation
    if revision.covers("2025-11-25", None) or asks is None or asks.url is None or asks.form is not None:
        return capabilities
    return structs.replace(capabilities, elicitation=None)


def declares(capabilities: t.ClientCapabilities, method: str, params: Any, revision: Revision) -> bool:
    """Whether a client has said that a question may be asked.

    Args:
        capabilities: What it can do.
        method: What is asked.
        params: The params, typed; they tell forms from pages.
        revision: The revision that is spoken.
    """
    said = in_revision(capabilities, revision)
    if method != "elicitation/create":
        needed = METHODS[method].capability
        return needed is None or getattr(said, needed) is not None
    asks = said.elicitation
    if isinstance(params, t.ElicitRequestURLParams):
        return asks is not None and asks.url is not None
    return asks is not None and (asks.form is not None or asks.url is None)


def _either(given: dict[str, Any] | None, wanted: bool) -> dict[str, Any] | None:
    return {} if given is None and wanted else given
