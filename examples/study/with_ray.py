#!/usr/bin/env python3
"""A study over a Ray cluster: with_ray.py SHARDS study.db model.json -r llm -p o2 --sample 5000

The workers need pwr and the folder of the study, on a file system that they share.
"""
import subprocess
import sys

import ray

SHARDS, FILE, WORDS = int(sys.argv[1]), sys.argv[2], sys.argv[3:]


@ray.remote(max_retries=3)
def shard(number):
    part = f"{FILE}.{number}"
    subprocess.run(["pwr", "explore", *WORDS, "--study", part, "--shard", f"{number}/{SHARDS}"], check=True)
    return part


ray.init()
parts = ray.get([shard.remote(number) for number in range(1, SHARDS + 1)])
subprocess.run(["pwr", "explore", "--merge", FILE, *parts], check=True)
