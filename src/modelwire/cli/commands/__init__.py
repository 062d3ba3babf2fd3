"""The table of commands. A command's module is loaded only when it is run.

Such a module has ``configure(parser, has_command)``, which adds its arguments, and ``run(args)``, which does the work
and returns the exit code; also ``USAGE_LINE``, ``DESCRIPTION`` and ``EPILOG`` for its help. ``args.command`` is what
followed ``--``, or None.
"""

from __future__ import annotations

COMMANDS = {
    "run": ("modelwire.cli.commands.run", "serve the Server object of a Python file, over stdio or at an address"),
    "list": ("modelwire.cli.commands.list", "list what a server has: tools, resources, prompts"),
    "call": ("modelwire.cli.commands.call", "call a tool"),
    "read": ("modelwire.cli.commands.read", "read a resource"),
    "prompt": ("modelwire.cli.commands.prompt", "have a prompt written out"),
}
"""Module and summary of each command, in the order of the help."""
