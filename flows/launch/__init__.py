"""Starts audits and back-fills: checks the lake first, and starts Prefect only if something is left to compute.

The flows themselves are ``flows.audit`` and ``flows.backfill``.
"""
