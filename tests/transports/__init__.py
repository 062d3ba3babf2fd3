"""Streams of every kind, most of them in processes of their own."""
