"""What examples/study/with_dask.py asks of Dask: for machines without it."""
