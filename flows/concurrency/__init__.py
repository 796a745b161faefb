"""Stages of one audit side by side: which may run at once, in which order, and the processes that compute them.

Scope: one audit of one year. Years side by side: ``flows.backfill``.
"""
