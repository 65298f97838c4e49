"""Derivatives of any function of a robot."""
