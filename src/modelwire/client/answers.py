"""Ready-made functions that answer a server."""
