"""Data, codecs and tables of the protocol: what may be said, by whom, since when, and in which form.

Nothing here waits, keeps state or opens anything. Import the modules; this package exports no names of its own.
"""
