"""Arithmetic of CEC: arrays in, arrays out; ``detection`` has the method in its order.

Tables are read in ``tasks.detection``, and laid out in ``tasks.pipeline.method``.
"""
