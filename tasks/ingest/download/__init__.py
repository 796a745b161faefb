"""One file over HTTP: asked for, judged, gone on with where it broke off, and told about while it comes.

What the file is, and what becomes of it, is not known here.
"""
