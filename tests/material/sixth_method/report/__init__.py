"""The chapter of NEARBY."""
