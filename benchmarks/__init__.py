"""What modelwire costs, measured against a bare loop and against the ``mcp`` package; never part of the library.

Run it with ``make bench``, which installs what it needs, or with ``python -m benchmarks`` once that has been done:

    --quick       fewer rounds and requests: a first look, with more noise
    --only NAME   one measurement; may be given several times, and ``*`` stands for anything
    --json FILE   also write every sample to a file
    --list        say what there is to measure

How to read it. Each measurement names its contestants, with the median and the least of their rounds. Figures are the
CPU time that one process spent, all its threads included and no waiting, so that other work on the machine disturbs
them little; they say nothing about latency. They hold for this machine and this minute. What may be compared, and what
is promised, are the ratios: the median of modelwire over the median of another, whose rounds took turns with it. A
promise that does not hold is marked, and the exit code is 1. What has no bound is there to be looked at.

How it is measured. A server is a child process on two pipes. It is sent a fixed number of requests, as many at once as
the measurement says, and every answer is decoded and held against what it must be; a wrong one ends the run. A client
is a child process, too, and starts the server that it calls; it times itself, without that server.

Over HTTP a server is sent its requests over kept-alive connections, one at a time on each.

The contestants. ``modelwire`` is this checkout. ``mcp`` is the package of that name, in the versions of
``benchmarks/constraints-peers.txt``, with its log turned down. The bare loop knows nothing of the protocol: it reads a
line, decodes it with msgspec, calls the function, writes the answer that modelwire gives, and flushes; the bare ASGI
application does the same with a body, under uvicorn with httptools and uvloop. Over HTTP modelwire runs as ``run`` has
it, and ``mcp`` as it installs itself, without sessions, answering with JSON where nothing is streamed. Their programs
are in ``benchmarks/programs``.
"""
