"""A server that asks while it works: the user twice, the client's model once, and where it may write.

The same lines serve clients of every revision. Run it with `mw run examples/hotel.py`, or put it into a client's
configuration as `python examples/hotel.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from modelwire import Context, Declined, Dismissed, Server, types

# With keys, another process (or this one after a restart) can go on with what was answered here.
KEYS = [key for key in os.environ.get("HOTEL_STATE_KEYS", "").split(",") if key]

server = Server("hotel", version="1.0.0", instructions="Books rooms.", state_keys=KEYS or None)


@dataclass
class Guests:
    """Who comes.

    Attributes:
        count: How many people.
        beds: How they like to sleep.
    """

    count: Annotated[int, msgspec.Meta(ge=1, le=8)]
    beds: Literal["one large", "two small"] = "one large"


@dataclass
class Breakfast:
    wanted: bool = True


@server.tool
async def book(hotel: str, nights: int, ctx: Context) -> str:
    """Book a room, asking the user for what is not known yet.

    Args:
        hotel: The hotel's name.
        nights: How many nights.
    """
    number = await ctx.once("reserve", lambda: reserve(hotel, nights))
    guests, breakfast = Guests(1), False
    if ctx.peer.supports("elicitation.form"):  # 2024-11-05 and 2025-03-26 have no forms, and some clients neither
        guests = await ctx.elicit(f"How many guests will stay at the {hotel}?", Guests)
        try:
            breakfast = (await ctx.elicit("Would you like breakfast?", Breakfast)).wanted
        except (Declined, Dismissed):
            breakfast = False
    welcome = await ctx.sample(f"Write one line that welcomes {guests.count} to the {hotel}.", max_tokens=60)
    folder = next((root.name or root.uri for root in await ctx.roots()), "nowhere")
    text = welcome.content.text if isinstance(welcome.content, types.TextContent) else "Welcome!"
    extra = " with breakfast" if breakfast else ""
    return f"Reservation {number}: {guests.count} for {nights} nights, {guests.beds}{extra}. {text} (kept in {folder})"


reserved: list[str] = []
"""What was reserved, to be seen that it was reserved once."""


def reserve(hotel: str, nights: int) -> int:
    """Reserve a room, which must not happen twice for one call."""
    reserved.append(f"{hotel}, {nights}")
    return len(reserved)


if __name__ == "__main__":
    server.run()
