"""Servers as applications keep them in files: ``mcpServers`` of most applications, ``servers`` of VS Code.

Reads files and entries, and fills in variables of the environment. It opens nothing, and no message of it shows a
value: values are where the secrets are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from modelwire.errors import ConfigError
from modelwire.log import log as _log

_SECTIONS = ("mcpServers", "servers")
_SUFFIXES = (".json", ".jsonc")
_UNREAD = ("envFile",)
"""What some applications act on and this library does not; without it a server may miss its secrets."""


@dataclass(frozen=True, slots=True)
class Configured:
    """An entry of a file, as it stands there: nothing is checked and nothing filled in yet.

    Attributes:
        where: The file and the server, for messages.
        entry: What the file has for it.
    """

    where: str
    entry: Any

    @property
    def disabled(self) -> bool:
        """Whether the file says that applications should leave it out."""
        entry = self.entry
        return isinstance(entry, dict) and cast("dict[str, Any]", entry).get("disabled") is True


@dataclass(frozen=True, slots=True)
class Entry:
    """One server, ready to be opened.

    Attributes:
        where: The file and the server, for messages.
        target: A command, or a URL.
        env: Environment variables for the command.
        cwd: The folder that the command runs in; None is this process's.
        headers: HTTP headers for the URL.
        old: Whether it is said to speak HTTP+SSE.
    """

    where: str
    target: list[str] | str
    env: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    old: bool = False


def read(path: str | os.PathLike[str]) -> dict[str, Configured]:
    """Return the servers of a file, by name, in the order of the file. Comments and trailing commas are taken, too.

    Raises:
        ConfigError: The file cannot be read, or is no such file.
    """
    name = os.fspath(path)
    whole = _parsed(name)
    sections = [whole[section] for section in _SECTIONS if isinstance(whole.get(section), dict)]
    if not sections:
        raise ConfigError(f'{name}: there is no "mcpServers" in it (nor "servers"), an object of servers by name')
    return {server: Configured(f"{name}, server {server!r}", entry) for server, entry in sections[0].items()}


def is_file(target: str) -> bool:
    """Whether a target names a configuration file, as far as its name says."""
    return target.partition("#")[0].lower().endswith(_SUFFIXES)


def find(target: Any) -> Entry | None:
    """Return the server that a target names in a configuration's way; None when the target is something else.

    Args:
        target: ``"mcp.json#weather"``, an entry such as ``{"command": "node", "args": ["server.js"]}``, or a server
            that `read` returned.

    Raises:
        ConfigError: It is such a target, and makes no sense or needs a variable that is not set.
    """
    if isinstance(target, Configured):
        return _entry(target.where, target.entry, filled=True)
    if isinstance(target, Mapping):
        return _entry("a server's entry", cast("Mapping[str, Any]", target), filled=False)
    if not isinstance(target, str | os.PathLike):
        return None
    written = os.fspath(cast("str | os.PathLike[str]", target))
    if not is_file(written):
        return None
    path, mark, name = written.partition("#")
    servers = read(path)
    found = servers.get(name)
    if found is None:
        raise ConfigError(_no_such(path, mark + name, servers))
    return find(found)


def _no_such(path: str, name: str, servers: Mapping[str, Any]) -> str:
    import difflib

    what = f"{path}: it has no server {name[1:]!r}" if name else f"{path}: say which of its servers"
    near = difflib.get_close_matches(name[1:], servers, n=1)
    example = next(iter([*near, *servers]), "name")
    which = f"did you mean {f'{path}#{near[0]}'!r}?" if near else f"name one as in {f'{path}#{example}'!r}."
    return f"{what}; {which} It has {', '.join(servers) or 'none'}; Group({path!r}) opens all of them"


# --------------------------------------------------------------------------------------------------- files


_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMAS = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])', re.DOTALL)


def _parsed(path: str) -> dict[str, Any]:
    import json

    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(f"cannot read {path!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: it is not UTF-8") from None
    try:
        whole = json.loads(_COMMAS.sub(_blanked, _COMMENTS.sub(_blanked, text)))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: no JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deeply") from None
    if not isinstance(whole, dict):
        raise ConfigError(f'{path}: it must be an object with "mcpServers"')
    return cast("dict[str, Any]", whole)


def _blanked(token: re.Match[str]) -> str:
    """Leave strings alone; what is none gives way to blanks, so that lines and columns stay right."""
    text = token[0]
    return text if text.startswith('"') else re.sub(r"[^\n]", " ", text)


# --------------------------------------------------------------------------------------------------- entries


def _entry(where: str, given: Any, *, filled: bool) -> Entry:
    if not isinstance(given, Mapping):
        raise ConfigError(f'{where}: it must be an object with "command" or "url"')
    entry = cast("Mapping[str, Any]", given)
    if ("command" in entry) == ("url" in entry):
        raise ConfigError(f'{where}: it needs "command" (a program) or "url" (an address), and not both')
    for name in _UNREAD:
        if name in entry:
            _log.warning('%s: "%s" is not read; put what it holds into "env"', where, name)
    read = _Reader(where, entry, _Fill(where) if filled else _as_it_is)
    if "url" in entry:
        url = read.text("url")
        if "://" not in url:
            raise ConfigError(
                f'{where}: "url" is no address such as http://HOST/PATH; a program goes into "command" and "args"'
            )
        return Entry(where, url, headers=read.texts("headers"), old=entry.get("type") == "sse")
    return Entry(
        where,
        [read.text("command"), *read.words("args")],
        env=read.texts("env"),
        cwd=read.text("cwd") if entry.get("cwd") is not None else None,
    )


class _Reader:
    """Reads the members of an entry.

    Args:
        where: The file and the server, for messages.
        entry: The entry.
        fill: Fills in the variables of a text, given the name of the member.
    """

    def __init__(self, where: str, entry: Mapping[str, Any], fill: Callable[[str, str], str]) -> None:
        self._where = where
        self._entry = entry
        self._fill = fill

    def text(self, name: str) -> str:
        """Return a member that is a string."""
        return self._text(name, self._entry[name])

    def words(self, name: str) -> list[str]:
        """Return a member that is a list of strings, empty when absent."""
        given: Any = self._entry.get(name)
        if not isinstance(given, list | None):
            raise self._wrong(name, "a list of strings", given)
        return [self._text(f"{name}[{at}]", word) for at, word in enumerate(cast("list[Any]", given or []))]

    def texts(self, name: str) -> dict[str, str]:
        """Return a member that is an object of strings, empty when absent; what is null in it counts as absent."""
        given: Any = self._entry.get(name)
        if not isinstance(given, Mapping | None):
            raise self._wrong(name, "an object of strings", given)
        values = cast("Mapping[str, Any]", given or {})
        return {key: self._text(f"{name}.{key}", value) for key, value in values.items() if value is not None}

    def _text(self, name: str, value: Any) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)  # people write ports as numbers
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        return self._fill(value, name)

    def _wrong(self, name: str, kind: str, value: Any) -> ConfigError:
        return ConfigError(f'{self._where}: "{name}" must be {kind}, not {type(value).__name__}')


def _as_it_is(text: str, name: str) -> str:
    return text


_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SPELLING = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class _Fill:
    """Puts environment variables where ``${NAME}``, ``${NAME:-default}`` or ``${env:NAME}`` stands.

    As in a shell, the default also stands for a variable that is empty.

    Args:
        where: The file and the server, for messages.
    """

    def __init__(self, where: str) -> None:
        self._where = where

    def __call__(self, text: str, name: str) -> str:
        return _VARIABLE.sub(lambda found: self._value(found[1], name), text)

    def _value(self, spelt: str, name: str) -> str:
        parts = _SPELLING.fullmatch(spelt)
        if parts is None:
            raise ConfigError(
                f'{self._where}: "{name}" has ${{{spelt.partition(":-")[0]}}}, which is no environment variable; '
                "write ${NAME}, ${NAME:-default} or ${env:NAME}"
            )
        variable, default = parts[1], parts[2]
        value = os.environ.get(variable)
        if default is not None:
            return value or default
        if value is None:
            raise ConfigError(
                f'{self._where}: "{name}" needs the environment variable {variable}, which is not set; set it, or '
                f"write a default: ${{{variable}:-...}}"
            )
        return value
