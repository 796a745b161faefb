"""Estimates over years: against the limit, and against the years before.

A year's estimate comes from its own run. Nothing here reads a table or knows a run.
"""
