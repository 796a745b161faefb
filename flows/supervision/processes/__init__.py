"""Processes that this one starts, is started by, or leaves behind: the server, the parent, and an end in order.

Signals of a command: ``flows.supervision.interruption``.
"""
