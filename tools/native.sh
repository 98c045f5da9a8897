#!/usr/bin/env bash
# Builds the router's fast transport where there is a Rust toolchain for it; without, the router uses its Python one.
set -eu
python=${1:?usage: native.sh PYTHON}
cd "$(dirname "$0")/.."

minor=$(cargo --version 2>/dev/null | sed -nE 's/^cargo 1\.([0-9]+).*/\1/p' || true)
if [ "${minor:-0}" -lt 88 ]; then
  echo "No cargo 1.88 or newer: the router uses its transport in Python."
  exit 0
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/.cache/cargo}"
echo "Building the router's native transport (minutes the first time) ..."
"$python" -m pip install --quiet --disable-pip-version-check ./router/native ||
  echo "The native transport did not build (see above): the router uses its transport in Python." >&2
