"""Stage ``preprocess``: features and groups from applications, what is missing, and the direction of the decision.

Files are read in ``tasks.ingest``; decisions are scored in ``tasks.scoring``.
"""
