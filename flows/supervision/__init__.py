"""Processes: presence, signals, orphans, crash files, the embedded API of Prefect, and preparation of a machine.

What runs in them is in ``flows.audit`` and ``flows.backfill``.
"""
