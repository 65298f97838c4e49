"""Robots that move: simulation, and the laws that control it."""
