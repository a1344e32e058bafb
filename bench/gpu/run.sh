#!/usr/bin/env bash
# Runs the GPU tests and benchmarks on a device, most useful first. A part that fails or exceeds its time limit does not
# stop the others. All parts together take at most eight minutes.
#
#   bench/gpu/run.sh prepare [sm_90]   build the programs and the Python module, compile the kernels, and pack all of it
#                                      into build/gpu/bundle.tar.gz; needs NVRTC, but no device
#   bench/gpu/run.sh [FOLDER]          run; replace the device's section of the pages in FOLDER or bench/results
#   bench/gpu/run.sh host [FOLDER]     the same on the emulator, which needs a C++ compiler, without times and time limits;
#                                      FOLDER or build/gpu/host
#
# A machine with a device needs the bundle, a CUDA driver, and Python 3.12 with PyTorch and transformers for the parts
# that use them. PW_GPU_PYTHON names a Python 3.12, by default python3.12 for prepare and python3 on the device; PW_TORCH_PYTHON
# names one with PyTorch for host. Matrix products are compared with cuBLASLt if the system or PWR_CUBLASLT provides it.
# Exit codes: 0 ok, 1 a part failed, 2 usage, 5 no device, 77 some parts were skipped and the others passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=${PW_BIN:-build/gpu/bin} cubins=build/gpu/cubins
most_mib=60 most_seconds=480
programs=(test_gpu pw_bench_gpu pw_bench_decode pw_bench_tensor)

note() { echo "run.sh: $*" >&2; }

# Packing

pack() {
  local all=build/gpu/piecewise-gpu file=build/gpu/bundle.tar.gz corpus=../shared/peers/corpus/models.py size
  local chain=../shared/peers/gpu/chain.cu
  rm -rf "$all" "$file"
  mkdir -p "$all" || return
  cp -r --parents bench/gpu/run.sh bench/gpu/*.py bench/peers/environment.py requirements/environments.py \
    tests/torch/*.py python/piecewise "${programs[@]/#/$bin/}" "$cubins" "$all" || return
  if compgen -G 'build/gpu/python/_piecewise.cpython-312-*.so' >/dev/null; then
    cp --parents build/gpu/python/_piecewise.cpython-312-*.so "$all" || return
  fi
  if [ -f "$corpus" ]; then cp "$corpus" "$all/tests/torch/corpus.py"; fi
  if [ -f "$chain" ]; then cp "$chain" "$all/bench/gpu/chain.cu"; fi
  find "$all" -name __pycache__ -prune -exec rm -r {} +
  find "$all/build" \( -path '*/bin/*' -o -name '*.so' \) -type f -exec strip {} + || return
  tar -C build/gpu -czf "$file" piecewise-gpu || return
  rm -r "$all"
  size=$(stat -c %s "$file")
  if ((size > most_mib << 20)); then
    note "$file has $((size >> 20)) MiB, more than $most_mib: prepare fewer kernels, or raise most_mib"
    return 1
  fi
  echo "packed $file: $(((size + (1 << 20) - 1) >> 20)) MiB of at most $most_mib; on the device:" \
    "tar xzf bundle.tar.gz && piecewise-gpu/bench/gpu/run.sh"
}

prepare() {
  local arch=${1:-sm_90}
  ./dev build-gpu || return
  mkdir -p "$cubins"
  PW_GPU_DRIVER=host PW_GPU_PREPARE=$arch PW_GPU_CUBINS=$cubins "$bin/test_gpu" || return
  "$bin/pw_bench_gpu" --prepare "$arch" --cubins "$cubins" || return
  "$bin/pw_bench_decode" --prepare "$arch" --cubins "$cubins" || return
  "$bin/pw_bench_tensor" --prepare "$arch" --cubins "$cubins" || return
  echo "prepared for $arch: $(find "$cubins" -name '*.cubin' | wc -l) kernels in $cubins"
  pack
}

# Running

# part NAME SECONDS COMMAND…: runs a part within its time limit and prints a line about it. Its output goes to
# $work/NAME.out and .err, and to the log.
part() {
  local name=$1 most=$2 left=$((most_seconds - SECONDS)) begin=$SECONDS code=0; shift 2
  if [ "$driver" = host ]; then most=3600 left=3600; fi
  if ((left < most)); then most=$left; fi
  if ((most < 5)); then
    failed+=("$name")
    echo "NOT RUN  $name: no time is left"
    return
  fi
  timeout --kill-after=5 "$most" "$@" >"$work/$name.out" 2>"$work/$name.err" || code=$?
  { echo "== $name: exit code $code, $((SECONDS - begin)) s"; cat "$work/$name.out" "$work/$name.err"; } >>"$log"
  case $code in
    0) echo "ok       $name, $((SECONDS - begin)) s" ;;
    77) skipped+=("$name"); echo "SKIPPED  $name: $(cat "$work/$name".{out,err} | grep -m 1 -i skip)" ;;
    *)
      failed+=("$name")
      if ((code == 124 || code == 137)); then echo "TOO LONG $name: ended after $most s"; else echo "FAILED   $name: exit code $code"; fi
      cat "$work/$name".{out,err} | tail -n 20 | cut -c 1-300
      ;;
  esac
  return "$code"
}

# torch_part NAME SECONDS SCRIPT…: a part that needs the Python module and PyTorch.
torch_part() {
  local name=$1 most=$2; shift 2
  if [ -n "$no_torch" ]; then
    skipped+=("$name")
    echo "SKIPPED  $name: $no_torch"
    return 77
  fi
  part "$name" "$most" "$python" "$@"
}

# Compiles and runs a chain of the matrix products of Llama-3.2-1B, the yardstick of a decode step.
run_chain() {
  local source=bench/gpu/chain.cu arch
  [ -f "$source" ] || source=../shared/peers/gpu/chain.cu
  [ -f "$source" ] || { echo "skipped: there is no chain.cu"; return 77; }
  command -v nvcc >/dev/null || { echo "skipped: there is no nvcc to compile chain.cu"; return 77; }
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0 | tr -d .) || return
  nvcc -std=c++17 -O3 -arch="sm_$arch" -cudart static -o "$work/chain" "$source" && "$work/chain"
}

# Prints the least of a chain's medians, in microseconds.
least_median() { awk -F'|' '$5 + 0 > 0 && (!least || $5 + 0 < least) { least = $5 + 0 } END { print least + 0 }' "$1"; }

# Decode steps of Llama-3.2-1B, with the chain's time if it ran.
llama_1b_decode() {
  local more=()
  export work
  export -f run_chain
  if [ "$driver" = cuda ] && part chain 60 bash -c run_chain; then
    { echo "### Chains"; echo; grep '^|' "$work/chain.out"; } >"$work/chain.md"
    more=(--chain "$(least_median "$work/chain.out")" --more "$work/chain.md")
  fi
  part llama-1b-decode 60 "$bin/pw_bench_decode" --driver "$driver" --cubins "${PW_GPU_CUBINS:-}" "${more[@]}" --output "$folder/decode.md"
}

# Prints why the Python module cannot run; nothing if it can.
torch_missing() {
  local why
  why=$("$python" -c 'import _piecewise, torch, transformers' 2>&1) || echo "$python: ${why##*$'\n'}"
}

# The tests of Python as lines of Markdown, from what unittest printed.
verdicts() {
  local name
  for name in "$@"; do
    [ -f "$work/$name.err" ] || continue
    echo "* $name: $(grep -E '^(Ran |OK|FAILED)' "$work/$name.err" | paste -sd' ' || true)"
    grep -hE '^(FAIL|ERROR): ' "$work/$name.err" | cut -c 1-160 | sed 's/^/  * /'
  done
}

run_all() {
  local corpus=tests/torch/corpus.py small=()
  [ -f "$corpus" ] || corpus=../shared/peers/corpus/models.py
  if [ "$driver" = host ]; then small=(--past 4 --prompt 6 --seconds 1800); fi
  part gpu-tests 50 "$bin/test_gpu"
  if [ $? = 77 ]; then note "no device, or no C++ compiler for the emulator"; exit 5; fi
  torch_part torch-tests 60 tests/torch/device.py --corpus none
  torch_part inductor-rules 60 tests/torch/fused_models.py
  { echo "### Tests"; echo; verdicts torch-tests inductor-rules; } >"$work/torch.md"
  torch_part torch-models 160 bench/gpu/torch_models.py --driver "$driver" --seconds 150 "${small[@]}" \
    --more "$work/torch.md" --output "$folder/torch_gpu.md"
  torch_part lens 30 bench/gpu/lens.py --folder "$folder/lens"
  if [ -s "$work/lens.out" ]; then { echo; echo "### Captured graphs in the lens"; echo; cat "$work/lens.out"; } >>"$work/decoder.md"; fi
  part pytorch-decoder 30 "$python" bench/gpu/decoder.py
  part pytorch-attention 25 "$python" bench/gpu/attention.py
  { echo "### The same decoder in PyTorch"; echo; cat "$work/pytorch-decoder.out"; } >>"$work/decoder.md"
  { echo "### Attention in PyTorch"; echo; cat "$work/pytorch-attention.out"; } >"$work/attention.md"
  part bench-gpu 30 "$bin/pw_bench_gpu" --driver "$driver" --cubins "${PW_GPU_CUBINS:-}" --more "$work/decoder.md" --output "$folder/gpu.md"
  llama_1b_decode
  part bench-tensor 40 "$bin/pw_bench_tensor" --driver "$driver" --cubins "${PW_GPU_CUBINS:-}" --more "$work/attention.md" \
    --output "$folder/tensor_cores.md"
  if [ -f "$corpus" ]; then torch_part torch-corpus 120 tests/torch/device.py --corpus "$corpus" Corpus; fi
}

case "${1:-}" in
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' bench/gpu/run.sh; exit ;;
  prepare) shift; prepare "$@"; exit ;;
esac

driver=cuda folder=bench/results python=${PW_GPU_PYTHON:-python3}
if [ "${1:-}" = host ]; then
  driver=host folder=build/gpu/host python=${PW_TORCH_PYTHON:-build/torch-env/bin/python}
  command -v "$python" >/dev/null || python=python3
  shift
fi
folder=${1:-$folder}
for program in "${programs[@]}"; do
  [ -x "$bin/$program" ] && continue
  note "SKIPPED: $bin/$program is not there; first: bench/gpu/run.sh prepare"
  if [ "$driver" = host ]; then exit 77; else exit 2; fi
done
mkdir -p "$folder" || exit
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
if [ "$folder" = bench/results ]; then log=build/gpu/run.log; else log=$folder/run.log; fi
mkdir -p "$(dirname "$log")" && : >"$log" || exit
[ ! -d "$cubins" ] || export PW_GPU_CUBINS=$PWD/$cubins
export PW_GPU_DRIVER=$driver PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$bin/../python:build/release/python:python
export HF_HUB_OFFLINE=1
failed=() skipped=()
no_torch=$(torch_missing)
run_all
echo "in $SECONDS s, pages in $folder, all output in $log"
[ ${#skipped[@]} = 0 ] || echo "SKIPPED: ${skipped[*]}"
[ ${#failed[@]} = 0 ] || { echo "FAILED: ${failed[*]}"; exit 1; }
[ ${#skipped[@]} = 0 ] || exit 77
