#!/bin/bash
# Writes the .txt beside each .in: the versions of all its packages and what they need, with the
# SHA-256 of every file that may be installed. It needs uv.
#
#     lock.sh            newest versions
#     lock.sh NAME…      these files alone, such as `lock.sh wheel`
set -euo pipefail
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- torch peer-torch peer-onnx peer-egglog wheel mypy vllm
for name in "$@"; do
  same=() python=3.11
  [ "$name" = torch ] || [ "$name" = vllm ] || same=(-c torch.txt) # one version of a package everywhere; vLLM has its own PyTorch
  [ ! -e "$name.overrides" ] || same+=(--overrides "$name.overrides")
  [ "$name" != wheel ] || python=3.10        # the oldest Python that wheels are built with
  env -u PIP_FIND_LINKS -u UV_FIND_LINKS uv pip compile --generate-hashes --python-version "$python" --no-header --no-annotate \
    --no-emit-index-url --only-binary :all: -q "${same[@]}" -o "$name.txt" "$name.in"
done
