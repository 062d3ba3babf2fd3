"""Tests of the programs in `examples`, run as a user would run them."""
