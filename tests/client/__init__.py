"""Tests of `modelwire.client`."""
