"""Clients: finding out how to talk to a server, calling it, and hearing from it."""
