#!/bin/sh
# Holds that no name of a static function is in two files: check/names.py
# Usage: check-names.sh [TOP-OF-THE-TREE]

here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
exec python3 "$here/check/names.py" "$@"
