#!/bin/sh
# Holds the comments of headers, and the examples in them, to what the headers declare: check/headers.py
# Usage: check-headers.sh [TOP-OF-THE-TREE]

here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
exec python3 "$here/check/headers.py" "$@"
