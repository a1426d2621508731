#!/bin/bash
# A program of your own that watches Retort and steers it, on one machine, for trying it: two servers of a site, Retort in
# front of them, and a guard that takes a server out of use while it fails. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/guard/run.sh            installs what is missing, builds, starts it all, says what to try,
#                                      and stops it all again on Ctrl-C
#     examples/guard/run.sh --check    breaks a server instead, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/guard.
source "$(dirname "$0")/../stage.sh"

configure_all() {
    choose_ports one:9001 two:9002 proxy:8080
    fill retort.conf.in PORT="$proxy_port" ONE="$one_port" TWO="$two_port" >"$dir/retort.conf"
}

start_servers() {
    start one python3 "$here/server.py" "$one_port"
    start two python3 "$here/server.py" "$two_port"
    wait_port one "$one_port"
    wait_port two "$two_port"
}

start_guard() {
    local retort=${pids[-1]}
    start guard python3 "$here/guard.py" "$dir/retort.sock" site --pause 5
    pids=("${pids[@]:0:2}" "${pids[-1]}" "$retort") # retort is the last, whose end is seen
    within 10 guard_says watching
}

within() { # within SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}
guard_says() { grep -q "$1" "$dir/guard.out"; }

show() {
    cat <<TEXT

Retort runs in front of two servers, and a guard watches it. In another window:

    while sleep 0.1; do curl -s http://127.0.0.1:$proxy_port/; done      pages of both servers
    curl http://127.0.0.1:$one_port/break                the first one fails from now on: it is drained soon
    curl http://127.0.0.1:$one_port/mend                 it is well again, and gets requests after 5 s

    tail -f $dir/guard.out
    $build/proxy/retortctl -s $dir/retort.sock origins

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# pages NUMBER: asks for so many; what came is in $dir/pages.out, a line with the server and one with the status for each.
pages() {
    for _ in $(seq "$1"); do
        curl -sS --max-time 30 -w '%{http_code}\n' "http://127.0.0.1:$proxy_port/" 2>>"$dir/curl.out"
    done >"$dir/pages.out"
}
all_well() { pages "$1" && [ "$(grep -c '^200$' "$dir/pages.out")" = "$1" ]; }
pages_of() { pages 20 && grep -q "from $1" "$dir/pages.out"; }
server() { curl -sS --max-time 30 "http://127.0.0.1:$1/$2" >>"$dir/curl.out" 2>&1; }

run_checks() {
    verify "both servers give pages" pages_of "$one_port"
    verify "both servers give pages: the other one" pages_of "$two_port"
    server "$one_port" break
    pages 60
    verify "the guard drains the server that fails" within 10 guard_says "127.0.0.1:$one_port: drained"
    verify "visitors see no errors any more" all_well 20
    verify "the audit log says who did it" grep -q "POST /settings" "$dir/audit.log"
    server "$one_port" mend
    verify "after a while the server is in use again" within 30 guard_says "127.0.0.1:$one_port: in use again"
    verify "it gives pages again" within 10 pages_of "$one_port"
    server "$one_port" break
    server "$two_port" break
    pages 80
    sleep 1
    verify "the last server is never drained" [ "$(grep -c ': drained' "$dir/guard.out")" = 2 ]
}

stage_begin guard "$@"
configure_all
start_servers
start_retort
start_guard
check_or_show
