"""Looks what the lake holds and starts Prefect only if something is left to compute.

The flows themselves are ``flows.audit`` and ``flows.backfill``.
"""
