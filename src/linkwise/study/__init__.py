"""For study: the operators of a robot as arrays, and robots made to be counted."""
