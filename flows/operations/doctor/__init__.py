"""Checks of `evenhand doctor`: the environment of an audit, that of each role of a deployment, and its settings.

What runs and lakes hold is checked by `evenhand verify` and `evenhand status`.
"""
