#!/usr/bin/env bash
# Makes a virtual environment with pip, also on a Debian machine that came without python3-venv.
set -eu
venv=${1:?usage: bootstrap.sh DIRECTORY}
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; then
  echo "kvplan needs Python 3.11, 3.12 or 3.13; '$python' is $("$python" --version 2>&1)." >&2
  echo "Install one and run: make setup PYTHON=python3.11" >&2
  exit 2
fi

[ -x "$venv/bin/pip" ] && exit 0
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "'$python' cannot make virtual environments. Run: sudo apt-get install python3-venv" >&2
    exit 2
  fi
  apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
fi
"$python" -m venv --clear "$venv"
