"""Stage ``ingest``: from files, a vintage or a generator to one table of applications; refused rows with reasons.

Which values are missing and what is made of them comes next, in ``tasks.preprocessing``.
"""
