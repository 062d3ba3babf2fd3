"""Tests of `modelwire.rpc`."""
