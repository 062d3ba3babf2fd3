"""Clients for programs that do not ``await``: the same methods and arguments, each of which returns when it is done.

    from modelwire.sync import Client

    with Client("server.py") as client:
        print(client.call("forecast", {"city": "Oslo"}, returns=list[str]))

All clients of a process share one event loop, in a daemon thread of its own; it ends with the process. They may be used
from several threads at once, and where an event loop runs already, as in a notebook. Ctrl-C gives up the request that
waits, and no more. Callbacks (``on_progress``, ``on_log``, observers and the like) run in the thread of the loop: they
should be quick, and cannot call a client. ``handlers`` that are plain functions run in worker threads, and may.

There is nothing here of what the asynchronous clients do; they do it.
"""

from modelwire.sync.client import Client
from modelwire.sync.group import Group
from modelwire.sync.listening import Listening

__all__ = ["Client", "Group", "Listening"]
