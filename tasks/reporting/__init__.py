"""Stage ``report``: pages, numbers and words of a report, from published tables alone. It computes no measure.

A method's section is in its folder, under ``report``.
"""
