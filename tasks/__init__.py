"""The stages of an audit: each loads tables, calls an algorithm and returns tables."""
