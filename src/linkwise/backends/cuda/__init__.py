"""Programs on NVIDIA GPUs: one thread per state."""
