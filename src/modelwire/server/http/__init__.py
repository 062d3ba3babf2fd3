"""Serving over HTTP: an ASGI application, and what runs it."""
