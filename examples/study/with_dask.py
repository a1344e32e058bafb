#!/usr/bin/env python3
"""A study over a Dask cluster: with_dask.py SHARDS study.db model.json -r llm -p o2 --sample 5000

DASK_SCHEDULER_ADDRESS names the scheduler; without it, this machine's cores are the cluster. The workers need pwr and the folder of
the study, on a file system that they share.
"""
import os
import subprocess
import sys

from dask.distributed import Client


def shard(number, of, file, words):
    part = f"{file}.{number}"
    subprocess.run(["pwr", "explore", *words, "--study", part, "--shard", f"{number}/{of}"], check=True)
    return part


if __name__ == "__main__":
    shards, file, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with Client(os.environ.get("DASK_SCHEDULER_ADDRESS")) as client:
        parts = client.gather(client.map(shard, range(1, shards + 1), of=shards, file=file, words=words))
    subprocess.run(["pwr", "explore", "--merge", file, *parts], check=True)
