"""What is wrong with a robot file: every problem, where it is, and how to mend it."""
