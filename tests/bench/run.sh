#!/bin/sh
# Measures Retort beside its peers: installs them (Debian packages), runs every case, prints the tables
# and, where nothing narrows it down, writes docs/PERFORMANCE.md and docs/plots. The figures stay in BUILD/bench.
#
#     tests/bench/run.sh BUILD              all of it, into docs/
#     tests/bench/run.sh BUILD --quick      one round of 1 s each: does every row work?
#     tests/bench/run.sh BUILD --only hits  and all other options of bench.py: --help
#
# BUILD is a build tree, configured with CFLAGS="-O2 -g" and without sanitizers.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
case ${1-} in -h | --help) exec /usr/bin/python3 "$here/bench.py" --help ;; esac
build=${1:?usage: $0 BUILD [options of bench.py]}
shift
"$here/../install.sh" bench >"$build/bench-install.log" 2>&1 || { tail -20 "$build/bench-install.log" >&2; exit 1; }
make -C "$build" -j"$(nproc)" all tests/bench/limit tests/bench/canned tests/bench/reader tests/bench/pace \
    tests/bench/tls_limit tests/bench/tls_connect tests/bench/compress >"$build/bench-make.log" 2>&1 ||
    { tail -20 "$build/bench-make.log" >&2; exit 1; }
[ $# -gt 0 ] || set -- --document
exec /usr/bin/python3 "$here/bench.py" "$build" "$@"
