"""Studies of many states: drawn by chunks, computed by Dask's workers, reduced, kept in Zarr."""
