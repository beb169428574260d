#!/bin/sh
# The native engine on this machine's card, in under 8 minutes: one JSON object on stdout, the log on stderr.
#
#   benchmarks/gpu.sh [PART ...]          parts: see python -m benchmarks.gpu --help; none: all
#
# Needs no network and no installed Longtake: a python3 with torch, numpy, safetensors, transformers and xxhash is enough
# (PYTHON names it; the checkout's .venv is taken if it is there). Without a card the same parts run in the tiny configuration.
set -eu
cd "$(dirname "$0")/.."
needs='import importlib.util as u, sys
sys.exit(not all(u.find_spec(m) for m in "torch numpy safetensors transformers xxhash".split()))'
for python in "${PYTHON:-}" .venv/bin/python python3; do
  [ -n "$python" ] && "$python" -c "$needs" 2>/dev/null && break
  python=
done
if [ -z "$python" ]; then
  echo '{"error": "no python with torch, numpy, safetensors, transformers and xxhash: make venv, or set PYTHON"}'
  exit 1
fi
export PYTORCH_ALLOC_CONF="${PYTORCH_ALLOC_CONF:-expandable_segments:True}"
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-$PYTORCH_ALLOC_CONF}"
exec "$python" -m benchmarks.gpu "$@"
