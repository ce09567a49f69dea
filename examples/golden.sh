#!/usr/bin/env bash
# The golden questions of the examples, asked in a fresh Home. `memoranda` is on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME="$folder/user" XDG_CONFIG_HOME="$folder/user/config" XDG_DATA_HOME="$folder/user/data"
mkdir -p "$HOME"
"$(dirname "$(command -v memoranda)")/python" examples/lay.py "$folder/home"
memoranda golden run --home "$folder/home"
