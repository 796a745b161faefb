"""Settings of the methods in the audit spec, a file a method, and the base that they share.

Settings that a stage derives from them are in the stage's folder, in ``settings``.
"""
