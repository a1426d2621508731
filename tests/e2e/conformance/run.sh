#!/bin/sh
# Runs http-cache-tests through Retort, in reverse mode, as a forward proxy, and in reverse mode by HTTP/2, at the same time.
#
#   tests/e2e/conformance/run.sh [--markdown] [BUILDDIR]
#
# Needs node and npm; the suite is fetched from the npm registry into tests/data/cache. --markdown
# writes docs/CONFORMANCE.md from what was seen in reverse mode. The last line counts all runs; exit status 0 when every required
# and optimal test passed that has no entry in exceptions.txt.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
markdown=
if [ "${1:-}" = --markdown ]; then
    markdown=$top/docs/CONFORMANCE.md
    shift
fi
build=${1:-$top/build}
version=0.4.5
suite=$top/tests/data/cache/http-cache-tests-$version

fetch_suite() {
    mkdir -p "$suite.new"
    (cd "$suite.new" &&
        npm pack --silent "http-cache-tests@$version" >/dev/null &&
        tar xzf "http-cache-tests-$version.tgz" --strip-components=1 &&
        npm install --silent --no-audit --no-fund --omit=dev --ignore-scripts node-fetch@2 >/dev/null)
    rm -rf "$suite"
    mv "$suite.new" "$suite"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

wait_for_port() {
    for _ in $(seq 600); do
        if python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null; then
            return 0
        fi
        sleep 0.1
    done
    echo "nobody listens on port $1" >&2
    return 1
}

[ -d "$suite/node_modules/node-fetch" ] || fetch_suite

scratch=$(mktemp -d)
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

origin=$(free_port)
reverse=$(free_port)
forward=$(free_port)
(cd "$suite" && npm_config_protocol=http npm_config_port=$origin npm_config_pidfile=$scratch/origin.pid \
    exec node server/server.mjs >"$scratch/origin.log" 2>&1) &
pids=$!
cat >"$scratch/retort.conf" <<END
workers = 1
listen "127.0.0.1:$reverse" { mode = reverse }
listen "127.0.0.1:$forward" { mode = forward  local_destinations = allow }
map "/" { origin = "http://localhost:$origin/"  preserve_host = true }
policy all { set_cookie = store }
END
"$build/proxy/retort" -f "$scratch/retort.conf" 2>"$scratch/retort.log" &
pids="$pids $!"
wait_for_port "$reverse"
# The suite's server may listen on either loopback address.
for _ in $(seq 600); do grep -q Listening "$scratch/origin.log" && break; sleep 0.1; done

# The suite waits for fixed times, so a busy machine can make a test fail: what fails is judged by a second run.
judge() {
    result=$scratch/$1.result
    node --no-warnings "$here/judge.mjs" "$suite" "$@" >"$result" && return
    { echo "$1 mode, the first time"; cat "$result"; } >"$scratch/$1.first"
    node --no-warnings "$here/judge.mjs" "$suite" "$@" >"$result"
}

# The suite mostly waits.
# shellcheck disable=SC2086
judge reverse "http://127.0.0.1:$reverse" "$here/exceptions.txt" $markdown & of_reverse=$!
judge forward "http://127.0.0.1:$forward" "http://localhost:$origin" "$here/exceptions.txt" & of_forward=$!
judge http2 "http://127.0.0.1:$reverse" "$here/exceptions.txt" & of_http2=$!
status=0
for judged in $of_reverse $of_forward $of_http2; do wait "$judged" || status=$?; done
for mode in reverse forward http2; do
    [ ! -e "$scratch/$mode.first" ] || cat "$scratch/$mode.first"
    echo "$mode mode"
    cat "$scratch/$mode.result"
done
tail -qn 1 "$scratch"/*.result | awk '{ passed += $1; failed += $3 } END { print passed " passed, " failed " failed" }'
exit $status
