"""Stage ``measure``: measures with intervals, limits and verdicts, from what the methods found.

What a method counts is in its folder; how results are written about is in ``tasks.reporting``.
"""
