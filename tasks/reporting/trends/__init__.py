"""The page over the years: what is comparable, and what a restated vintage changed.

Which runs belong to it is decided in ``flows.partitions.trends``.
"""
