"""The years of a back-fill: which there are, how each stands, attempts, forecasts and runners.

The flow that walks over them is ``flows.backfill``.
"""
