#!/bin/bash
# A fleet on one machine, for trying it: three nodes of Retort in front of nginx, and three servers of Valkey or Redis with three
# Sentinels. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/fleet/run.sh            installs what is missing, builds, starts it all, says what to try,
#                                      and stops it all again on Ctrl-C
#     examples/fleet/run.sh --check    purges, kills a node, kills the server that serves, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/fleet.
source "$(dirname "$0")/../stage.sh"
packages=fleet
nodes="n1 n2 n3"

configure_all() {
    local number
    choose_ports n1:8081 n2:8082 n3:8083 origin:9000 server1:6379 server2:6380 server3:6381 sentinel1:26379 sentinel2:26380 sentinel3:26381
    configure_site 'add_header Cache-Control "max-age=3600"; add_header Surrogate-Key "site";' >"$dir/nginx.conf"
    (umask 077; openssl rand -hex 32 >"$dir/fleet.key")
    for number in 1 2 3; do configure_node n$number; configure_server $number; done
}

configure_node() {
    local port=$1_port
    mkdir -p "$dir/$1"
    fill retort.conf.in NODE="$1" PORT="${!port}" ORIGIN="$origin_port" \
        SENTINELS="\"127.0.0.1:$sentinel1_port\", \"127.0.0.1:$sentinel2_port\", \"127.0.0.1:$sentinel3_port\"" >"$dir/$1.conf"
}

# The first one serves at first; the others are copies of it.
configure_server() {
    local port=server$1_port watch=sentinel$1_port
    mkdir -p "$dir/server$1" "$dir/sentinel$1"
    printf '%s\n' "port ${!port}" "bind 127.0.0.1" "dir $dir/server$1" "appendonly yes" 'save ""' >"$dir/server$1.conf"
    if [ "$1" != 1 ]; then echo "replicaof 127.0.0.1 $server1_port" >>"$dir/server$1.conf"; fi
    printf '%s\n' "port ${!watch}" "bind 127.0.0.1" "dir $dir/sentinel$1" "sentinel monitor edge 127.0.0.1 $server1_port 2" \
        "sentinel down-after-milliseconds edge 1000" "sentinel failover-timeout edge 5000" >"$dir/sentinel$1.conf"
}

start_engine() {
    local number port program
    program=$(command -v redis-server || command -v valkey-server)
    for number in 1 2 3; do
        port=server${number}_port
        start "server$number" "$program" "$dir/server$number.conf"
        servers[number]=${pids[-1]}
        wait_port "server$number" "${!port}"
    done
    for number in 1 2 3; do
        port=sentinel${number}_port
        start "sentinel$number" "$program" "$dir/sentinel$number.conf" --sentinel
        wait_port "sentinel$number" "${!port}"
    done
}

start_node() {
    local port=$1_port
    start "retort-$1" "$build/proxy/retort" -f "$dir/$1.conf"
    node_pids[${1#n}]=${pids[-1]}
    wait_port "retort-$1" "${!port}"
}

ctl() { "$build/proxy/retortctl" -s "$dir/$1.sock" "${@:2}"; }

show() {
    cat <<TEXT

Three nodes serve one site: http://127.0.0.1:$n1_port/, http://127.0.0.1:$n2_port/, http://127.0.0.1:$n3_port/. In another window:

    ctl="$build/proxy/retortctl -s $dir/n1.sock"
    \$ctl fleet
    curl -sI http://127.0.0.1:$n3_port/index.html | grep Cache-Status
    \$ctl cache purge --tag site --wait 5                in force on 3 of 3 nodes
    kill -9 ${servers[1]}                                   the server that serves: another one does after some seconds
    \$ctl fleet

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

within() { # within SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}
end_at_once() { { kill -KILL "$1"; wait "$1"; } 2>/dev/null || true; }
page() { local port=$1_port; curl -sS -D "$dir/head" -o "$dir/page" "http://127.0.0.1:${!port}/index.html"; }
is_hit() { page "$1" && grep -qi '^Cache-Status:.*; hit' "$dir/head"; }
all_hit() { local node; for node in $nodes; do page "$node"; is_hit "$node" || return 1; done; }
none_hit() { local node; for node in $nodes; do ! is_hit "$node" || return 1; done; }
is_proven() { ctl "$1" fleet >"$dir/ctl.out" 2>&1 && grep -q ": proven" "$dir/ctl.out"; }
all_proven() { local node; for node in $nodes; do is_proven "$node" || return 1; done; }
purged_on() { ctl "$1" cache purge --tag site --wait 10 >"$dir/ctl.out" && grep -q "in force on $2 nodes" "$dir/ctl.out"; }

run_checks() {
    verify "three nodes have proved what they know" within 20 all_proven
    verify "each has a page" all_hit
    verify "a purge at one node is in force on three" purged_on n1 "3 of 3"
    verify "no node has the page any more" none_hit
    verify "each has a page again" all_hit
    end_at_once "${node_pids[3]}"
    verify "a node is killed: the answer of a purge misses it" purged_on n2 "2 of 3"
    start_node n3
    verify "the node is back: it has proved what it knows" within 20 is_proven n3
    verify "each has a page once more" all_hit
    end_at_once "${servers[1]}"
    verify "the server of the fleet is killed: pages come" page n1
    verify "another server serves: a purge is in force on three" within 40 purged_on n1 "3 of 3"
    verify "no node has the page any more: none serves what was purged" none_hit
}

stage_begin fleet "$@"
make_site
configure_all
start_nginx
start_engine
for node in $nodes; do start_node "$node"; done
check_or_show
