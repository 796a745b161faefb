"""The pages, one module per kind: queries to the lake, and the layout of the results.

Most are a ``tasks.reporting.text.Section`` in the frame of ``flows.serving.site``, as pages of reports are.
"""
