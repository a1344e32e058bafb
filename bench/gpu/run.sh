#!/usr/bin/env bash
# On a device, in one call: the tests labelled gpu, the benchmarks, and PyTorch's attention and decoder beside them. The
# machine may be bare: all it needs is build/gpu, and a CUDA driver (and NVRTC, where build/gpu/cubins was not prepared).
# Products are compared with cuBLASLt's where that is, or where PWR_CUBLASLT says it is; without it they are kernels of our own.
#
#   bench/gpu/run.sh prepare [sm_90]   builds the programs and compiles their kernels; needs NVRTC, and no device
#   bench/gpu/run.sh [FOLDER]          runs; the tables go to bench/results, or where it is told
#   bench/gpu/run.sh host [FOLDER]     the same on the host, without any times
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=build/gpu/bin cubins=build/gpu/cubins

case "${1:-}" in -h | --help) sed -n '2,8s/^# \{0,1\}//p' bench/gpu/run.sh; exit ;; esac

if [ "${1:-}" = prepare ]; then
  arch=${2:-sm_90}
  ./dev build-gpu || exit
  mkdir -p "$cubins"
  PW_GPU_DRIVER=host PW_GPU_PREPARE=$arch PW_GPU_CUBINS=$cubins "$bin/test_gpu" || exit
  "$bin/pw_bench_gpu" --prepare "$arch" --cubins "$cubins" || exit
  "$bin/pw_bench_tensor" --prepare "$arch" --cubins "$cubins" || exit
  echo "prepared for $arch: $(find "$cubins" -name '*.cubin' | wc -l) kernels in $cubins"
  exit
fi

host=()
if [ "${1:-}" = host ]; then host=(--driver host); export PW_GPU_DRIVER=host; shift; fi
folder=${1:-bench/results}
[ -x "$bin/test_gpu" ] || { echo "run.sh: $bin/test_gpu is not there; first: bench/gpu/run.sh prepare" >&2; exit 2; }
[ ! -d "$cubins" ] || export PW_GPU_CUBINS=$cubins

code=0
"$bin/test_gpu" || code=$?
if [ "$code" = 77 ]; then exit 5; fi
mkdir -p "$folder" || exit
"$bin/pw_bench_gpu" "${host[@]}" --cubins "${PW_GPU_CUBINS:-}" --output "$folder/gpu.md" || code=$?
"$bin/pw_bench_tensor" "${host[@]}" --cubins "${PW_GPU_CUBINS:-}" --output "$folder/tensor_cores.md" || code=$?
{ echo "## Attention in PyTorch"; echo; python3 bench/gpu/attention.py; } | tee -a "$folder/tensor_cores.md"
{ echo; echo "## The same decoder in PyTorch"; echo; python3 bench/gpu/decoder.py; } | tee -a "$folder/gpu.md"
exit "$code"
