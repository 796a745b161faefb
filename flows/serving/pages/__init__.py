"""The pages, a module for each kind: what is asked of the lake, and how it stands on the page.

Most are a ``tasks.reporting.text.Section`` in the frame of ``flows.serving.site``, as pages of reports are.
"""
