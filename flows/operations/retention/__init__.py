"""Retention of a lake: its settings, and what no kept run needs."""
