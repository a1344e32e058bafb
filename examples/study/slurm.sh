#!/bin/bash
#SBATCH --array=1-8
#SBATCH --cpus-per-task=1
# A study over a Slurm array: sbatch slurm.sh study.db model.json -r llm -p o2 --sample 5000
# Each task does its shard into a file of its own; one that is killed goes on when it is requeued. Afterwards:
#   pwr explore --merge study.db study.db.*
set -eu
file=$1
shift
exec pwr explore "$@" --study "$file.$SLURM_ARRAY_TASK_ID" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
