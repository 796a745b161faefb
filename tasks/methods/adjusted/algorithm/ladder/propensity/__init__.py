"""Comparisons that rest on the propensity: the probability of being in the group, given the controls.

Scope: a group against the reference group alone. Fits with all groups: one folder up.
"""
