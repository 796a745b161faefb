"""Disclosure control."""
