"""Faults that people met elsewhere, each as a test named after the right behaviour."""
