"""HTTP as clients speak it: Streamable HTTP of both eras, and HTTP+SSE of 2024-11-05."""
