"""The arithmetic of NEARBY."""
