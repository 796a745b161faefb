"""Alerts: the file with addresses and rules, what is sent for an ending, and the record that it was sent.

Scope: one ending, one message an address and rule. How a run ended: the folder above.
"""
