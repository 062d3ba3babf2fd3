"""Tables on a terminal. The only file of the command line that needs rich, which is loaded when a table is drawn."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from modelwire.cli.failures import usage
from modelwire.cli.output import safe_text

Rows = Sequence[Sequence[str]]


def check_available() -> None:
    """Check that tables can be drawn, before anything is done for nothing.

    Raises:
        Failure: rich is not installed.
    """
    try:
        importlib.import_module("rich")
    except ImportError:
        raise usage(
            "tables on a terminal need the package rich: pip install 'modelwire[cli]' (or use --json)"
        ) from None


def draw(title: str, columns: Sequence[str], rows: Rows) -> None:
    """Draw one table on stdout.

    Args:
        title: What it lists.
        columns: The heads of the columns.
        rows: One row per item, as wide as the heads. Control characters are spelled out; markup means nothing.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(Text(column), style="cyan" if position == 0 else "", overflow="fold")
    for row in rows:
        table.add_row(*(Text(safe_text(cell)) for cell in row))
    Console(file=sys.stdout).print(table)
