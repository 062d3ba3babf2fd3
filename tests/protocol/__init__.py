"""Tests of `modelwire.protocol`."""
