"""The tests mirror `src/modelwire`, one file per module, and may import each other's fakes as `tests.…`."""
