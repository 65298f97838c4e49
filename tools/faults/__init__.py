"""Faults put into robot files, states and caches on purpose, and what became of them."""
