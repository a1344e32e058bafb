"""The part of Dask that examples/study/with_dask.py uses, for machines without Dask."""
