"""Which server of several a URI belongs to, by what the servers listed. Pure: it asks no server anything."""

from __future__ import annotations

from collections.abc import Iterable

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.rules.uri_template import UriTemplate


class Owners:
    """Remembers whose resources and templates are whose."""

    def __init__(self) -> None:
        self._uris: dict[str, set[str]] = {}
        self._templates: dict[str, dict[str, UriTemplate | None]] = {}

    def add(self, server: str) -> None:
        """Take in a server."""
        self._uris[server] = set()
        self._templates[server] = {}

    def remove(self, server: str) -> None:
        """Forget a server."""
        self._uris.pop(server, None)
        self._templates.pop(server, None)

    def resources_listed(self, server: str, uris: Iterable[str]) -> None:
        """Note the URIs of all that a server listed."""
        if server in self._uris:
            self._uris[server] = set(uris)

    def templates_listed(self, server: str, templates: Iterable[str]) -> None:
        """Note all templates that a server listed."""
        if server in self._templates:
            known = self._templates[server]
            self._templates[server] = {text: known[text] if text in known else _template(text) for text in templates}

    def find(self, uri: str) -> list[str]:
        """Return the servers that a URI may belong to: those that listed it, or else those with a template for it."""
        listed = [server for server, uris in self._uris.items() if uri in uris]
        return listed or [
            server
            for server, templates in self._templates.items()
            if any(text == uri or (it is not None and it.match(uri) is not None) for text, it in templates.items())
        ]


def _template(text: str) -> UriTemplate | None:
    try:
        return UriTemplate(text)
    except ConfigError as error:
        _log.info("the template %r matches no URI: %s", text[:200], error)
        return None
