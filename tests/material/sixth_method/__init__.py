"""NEARBY, whole: a method so small that it fits into a test."""
