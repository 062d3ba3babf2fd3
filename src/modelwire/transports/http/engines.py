"""Which engine HTTP is spoken with: our own; aiohttp through a proxy; or a client of aiohttp or httpx that was given.

The library is imported when it is needed, and not before.
"""

from __future__ import annotations

from modelwire.errors import ConfigError
from modelwire.transports.http.endpoint import Endpoint, proxy_for
from modelwire.transports.http.engine import Engine

_MISSING = "http:// and https:// need {}: pip install 'modelwire[http]'"


def engine_for(endpoint: Endpoint) -> Engine:
    """Return an engine for one connection; its requests share a pool.

    Raises:
        ConfigError: aiohttp is not installed, what was given as ``http=`` is no client, or the environment names a
            proxy of another kind.
    """
    given = endpoint.options.http
    if given is not None and _is_httpx(given):
        from modelwire.transports.http.httpx_engine import HttpxEngine

        return HttpxEngine(given)
    if given is None and proxy_for(endpoint.url, endpoint.options.proxy) is None:
        try:
            from modelwire.transports.http.own_engine import OwnEngine
        except ImportError:
            raise ConfigError(_MISSING.format("httptools")) from None
        return OwnEngine(endpoint)
    try:
        import aiohttp
    except ImportError:
        raise ConfigError(_MISSING.format("aiohttp")) from None
    if given is not None and not isinstance(given, aiohttp.ClientSession):
        raise ConfigError(f"http= is an aiohttp.ClientSession or an AsyncClient of httpx, not {given!r}")
    from modelwire.transports.http.aiohttp_engine import AiohttpEngine

    return AiohttpEngine(endpoint, given)


def _is_httpx(given: object) -> bool:
    return any(kind.__module__.partition(".")[0] in ("httpx", "httpx2") for kind in type(given).__mro__)
