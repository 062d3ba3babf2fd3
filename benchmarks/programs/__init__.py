"""The programs that are measured, each run as ``python -m benchmarks.programs.NAME`` in a process of its own."""
