#!/bin/sh
# Holds that each struct of a transaction is changed only by the files that its header names: check/writers.py
# Usage: check-writers.sh [TOP-OF-THE-TREE]

here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
exec python3 "$here/check/writers.py" "$@"
