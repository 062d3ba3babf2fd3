"""Servers: what they offer, how their functions are called, and how they are served."""
