"""Stage ``alternatives``: models as good as the fitted one that approve groups more nearly alike, where requested.

The register has every candidate. It says nothing of rows that chose none of them; the gains do.
"""
