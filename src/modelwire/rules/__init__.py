"""The rules of the protocol as plain values: no await, no clock, no socket."""
