"""Programs as C: for reading, and for compilers that are not ours."""
