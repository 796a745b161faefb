"""Commands ``evenhand data ...`` and what they print.

Scope: arguments and output. Editions themselves: ``tasks.ingest.vintages``.
"""
