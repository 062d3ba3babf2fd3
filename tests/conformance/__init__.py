"""The official conformance suite, set on modelwire, and judged more strictly than it judges itself."""
