"""Whom a client trusts over TLS: what ``verify=`` says, as a context of the standard library. It connects nothing."""

from __future__ import annotations

import os
import ssl
from typing import Any, TypeAlias, cast

from modelwire.errors import ConfigError

Cert: TypeAlias = "str | os.PathLike[str] | tuple[str | os.PathLike[str], str | os.PathLike[str]]"
Verify: TypeAlias = "bool | str | os.PathLike[str] | ssl.SSLContext"


def tls_context(verify: Any, cert: Any = None) -> ssl.SSLContext:
    """Return the context for ``verify=`` and ``cert=``.

    Args:
        verify: True for the authorities that this machine trusts; a file in PEM form, or a folder, with the only ones
            to trust; a context of one's own; False to trust anybody, who may then read and change everything.
        cert: The client's own certificate: a file in PEM form, or a pair of those of the certificate and its key.

    Raises:
        ConfigError: It is none of these, or the file cannot be used.
    """
    context = _verifying(verify)
    if cert is not None:
        _show(context, cert)
    return context


def _show(context: ssl.SSLContext, cert: Any) -> None:
    """Have a context show a certificate of our own."""
    files = cast("tuple[Any, ...]", cert) if isinstance(cert, tuple | list) else (cert,)
    if not 1 <= len(files) <= 2 or not all(isinstance(file, str | os.PathLike) for file in files):
        raise ConfigError("cert= is the path of a PEM file, or a pair of those of the certificate and its key")
    try:
        context.load_cert_chain(*files)
    except OSError as error:
        raise ConfigError(f"cert= cannot be used: {error.strerror or error}") from None


def _verifying(verify: Any) -> ssl.SSLContext:
    if isinstance(verify, ssl.SSLContext):
        return verify
    if isinstance(verify, bool):
        context = ssl.create_default_context()
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
    if not isinstance(verify, str | os.PathLike):
        raise ConfigError(
            "verify= is True, False, the path of a file of certificates in PEM form, or an ssl.SSLContext; "
            f"not {verify!r}"
        )
    path = os.fspath(cast("str | os.PathLike[str]", verify))
    try:
        if os.path.isdir(path):
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise ConfigError(f"verify={path!r} cannot be used: {error.strerror or error}") from None
