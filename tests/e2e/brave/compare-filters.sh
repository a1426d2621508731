#!/bin/sh
# A sample of what compare_filters.py compares, for make check. Exit status 77, skipped, without the
# test data (tests/data/fetch.sh).
here=$(cd "$(dirname "$0")" && pwd)
exec /usr/bin/python3 "$here/compare_filters.py" --builddir "$PWD" --every 11
