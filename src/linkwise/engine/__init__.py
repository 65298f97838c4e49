"""From the name of a function to a running kernel: tasks, kernels, cache, arrays, `auto`."""
