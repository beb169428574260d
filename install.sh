#!/bin/sh
# Install into .venv, at the versions of requirements.lock: with uv where there is one, else with pip.
set -eu
for uv in .venv/bin/uv uv; do
  if command -v "$uv" >/dev/null; then
    exec "$uv" pip install --quiet --python .venv/bin/python --constraints requirements.lock "$@"
  fi
done
exec .venv/bin/python -m pip install --quiet --constraint requirements.lock "$@"
