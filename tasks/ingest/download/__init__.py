"""Download of one file over HTTP: requests, checks of answers, resumption and progress.

What the file is, and what becomes of it, is not known here.
"""
