"""Frames, dispatch and deadlines over any stream. Asynchronous; knows no feature of MCP."""
