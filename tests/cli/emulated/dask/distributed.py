"""Dask's client by processes of this machine, which run the function as a worker does: from a pickle."""
from concurrent.futures import ProcessPoolExecutor


class Client:
    def __init__(self, address=None):
        self.address = address
        self.pool = ProcessPoolExecutor(4)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown()

    def map(self, function, numbers, **named):
        return [self.pool.submit(function, number, **named) for number in numbers]

    def gather(self, futures):
        return [each.result() for each in futures]
