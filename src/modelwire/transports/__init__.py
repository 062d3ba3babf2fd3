"""The streams that carry frames: standard streams, child processes, memory. None of them knows the protocol."""
