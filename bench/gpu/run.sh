#!/usr/bin/env bash
# Runs the tests labelled gpu and the GPU benchmarks on a device, with PyTorch's attention and decoder for comparison. The
# machine needs only build/gpu and a CUDA driver, and NVRTC if build/gpu/cubins was not prepared. Matrix products are
# compared with cuBLASLt if the system or PWR_CUBLASLT provides it.
#
#   bench/gpu/run.sh prepare [sm_90]   builds the programs and compiles their kernels; needs NVRTC, but no device
#   bench/gpu/run.sh [FOLDER]          runs; replaces the device's section of the pages in bench/results or FOLDER
#   bench/gpu/run.sh host [FOLDER]     the same on the emulator, without times
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
peers=$(mktemp -d) || exit
trap 'rm -rf "$peers"' EXIT
{ echo "### Attention in PyTorch"; echo; python3 bench/gpu/attention.py; } | tee "$peers/attention.md"
{ echo "### The same decoder in PyTorch"; echo; python3 bench/gpu/decoder.py; } | tee "$peers/decoder.md"
"$bin/pw_bench_gpu" "${host[@]}" --cubins "${PW_GPU_CUBINS:-}" --more "$peers/decoder.md" --output "$folder/gpu.md" || code=$?
"$bin/pw_bench_tensor" "${host[@]}" --cubins "${PW_GPU_CUBINS:-}" --more "$peers/attention.md" --output "$folder/tensor_cores.md" || code=$?
exit "$code"
