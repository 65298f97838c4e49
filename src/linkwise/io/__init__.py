"""Readers: a file in, a `RobotDescription` out. No mechanics here."""
