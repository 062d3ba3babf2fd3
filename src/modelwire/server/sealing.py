"""Sealed states: bytes that go through the client, which can neither read nor change them.

AES-256-GCM with a ring of keys: the first one seals, every one opens, so that keys can be exchanged while servers run.
What is inside, and whether it still holds, is not looked at here. Needs the package ``cryptography``, imported only
when there are keys.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from typing import Any

from modelwire.errors import ConfigError

MAX_STATE = 64 * 1024
"""Characters of a sealed state."""
SHORTEST_KEY = 32
"""Bytes, or characters, of a key."""

_PREFIX = b"\x01"
"""The version of the form."""
_NONCE = 12
_PURPOSE = b"modelwire requestState"


class KeyRing:
    """Seals and opens states.

    Args:
        keys: Secrets of at least 32 bytes or characters, the newest first.

    Raises:
        ConfigError: There is none, one is too short, or ``cryptography`` is not installed.
    """

    def __init__(self, keys: Sequence[bytes | str]) -> None:
        if isinstance(keys, str | bytes) or not keys:
            raise ConfigError("state_keys is a list of secrets, the newest first: state_keys=[os.environ['STATE_KEY']]")
        self._ciphers = [_cipher(key) for key in keys]

    def seal(self, content: bytes) -> str:
        """Return content as a state. The result may be longer than `MAX_STATE`; that is for the caller to look at."""
        nonce = os.urandom(_NONCE)
        sealed = self._ciphers[0].encrypt(nonce, content, _PREFIX + _PURPOSE)
        return base64.urlsafe_b64encode(_PREFIX + nonce + sealed).decode().rstrip("=")

    def open(self, state: str) -> bytes | None:
        """Return the content of a state; None for what none of the keys has sealed."""
        from cryptography.exceptions import InvalidTag

        if len(state) > MAX_STATE:
            return None
        try:
            raw = base64.b64decode(state.encode() + b"=" * (-len(state) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        if raw[:1] != _PREFIX or len(raw) <= 1 + _NONCE:
            return None
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(raw[1 : 1 + _NONCE], raw[1 + _NONCE :], _PREFIX + _PURPOSE)
            except InvalidTag:
                continue
        return None


def _cipher(key: Any) -> Any:
    if not isinstance(key, str | bytes):
        raise ConfigError(f"a state key is bytes or a string, not a {type(key).__name__}")
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < SHORTEST_KEY:
        raise ConfigError(
            f"a state key has at least {SHORTEST_KEY} bytes, not {len(secret)}; make one with secrets.token_urlsafe(32)"
        )
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise ConfigError("state_keys needs the package cryptography: pip install 'modelwire[state]'") from None
    return AESGCM(hashlib.sha256(_PURPOSE + b" key " + secret).digest())
