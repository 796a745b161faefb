"""The arithmetic of the baselines: arrays in, arrays out.

A kind is a folder: ``kind.py`` has its protocol, ``registry.py`` its systems by name, and each system is a file.
"""
