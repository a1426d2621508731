#!/bin/bash
# Transparent mode on one machine: three network namespaces in a row are a client, a router with Retort, and a server. The rules and
# configurations are the files beside this one, as they are. As root:
#
#     transparent.sh redirect           REDIRECT (or: tproxy, output) until Ctrl-C; says what to try
#     transparent.sh --check            tries all three instead, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/transparent. The namespaces end with the script.
here=$(cd "$(dirname "$0")" && pwd)
# The script itself runs on the router.
[ "${ROUTER:-}" = yes ] || exec env ROUTER=yes unshare --net "$0" "$@"
source "$here/../stage.sh"

how=redirect
options=()
for word in "$@"; do
    case $word in redirect | tproxy | output) how=$word ;; *) options+=("$word") ;; esac
done

prepare() {
    if [ $install = yes ]; then "$source_dir/tests/install.sh" test >&2; fi
    if [ ! -x "$build/proxy/retort" ]; then build_all; fi
}

# ---- the network ------------------------------------------------------------------------------

# host NAME DEVICE NUMBER: a namespace behind this device of the router, with the addresses 10.99.NUMBER.2 and fd99:NUMBER::2.
host() {
    start "$1" unshare --net sleep infinity
    local pid=${pids[-1]}
    until [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
    printf -v "$1" %s "$pid"
    ip link add "$2" type veth peer name eth0 netns "$pid"
    ip link set "$2" up
    ip address add "10.99.$3.1/24" dev "$2"
    ip address add "fd99:$3::1/64" dev "$2" nodad
    on "$1" ip link set lo up
    on "$1" ip link set eth0 up
    on "$1" ip address add "10.99.$3.2/24" dev eth0
    on "$1" ip address add "fd99:$3::2/64" dev eth0 nodad
    on "$1" ip route add default via "10.99.$3.1"
    on "$1" ip -6 route add default via "fd99:$3::1"
}

# on HOST COMMAND...
on() {
    local -n pid=$1
    shift
    nsenter --net="/proc/$pid/ns/net" "$@"
}

make_network() {
    ip link set lo up
    host client lan0 1
    host server wan0 2
    echo 1 >/proc/sys/net/ipv4/ip_forward
    echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
}

start_server() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/server.key" -out "$dir/server.pem" \
        -days 2 -subj "/CN=the server" -addext "subjectAltName=IP:10.99.2.2,IP:fd99:2::2" 2>"$dir/openssl.out"
    cat "$dir/server.key" >>"$dir/server.pem"
    start server.py nsenter --net="/proc/$server/ns/net" python3 "$here/server.py" "$dir/server.pem"
    for _ in $(seq 100); do
        if curl -s --noproxy '*' -o "$dir/it.body" http://10.99.2.2/ready; then return; fi
        sleep 0.1
    done
    say "the server did not start; its words are in $dir/server.py.out"
    exit 1
}

# begin HOW: the rules, the routes, and Retort.
begin() {
    proxy_port=$(port 0)
    nft flush ruleset
    nft -f "$here/$1.nft"
    if [ "$1" = tproxy ]; then "$here/tproxy-routes.sh" up; fi
    cat "$here/$1.conf" - >"$dir/retort.conf" <<RETORT
workers = 1
listen "127.0.0.1:$proxy_port" { mode = forward }
access_log "$dir/$1.log" { format = json }
admin { listen = "$dir/retort.sock" }
RETORT
    start_retort
}

# ---- the check --------------------------------------------------------------------------------

# get URL [OPTION...]: from the client, or with output from the router.
get() {
    local from=(on client)
    if [ "$how" = output ]; then from=(); fi
    "${from[@]}" curl -sS --max-time 10 --noproxy '*' --cacert "$dir/server.pem" -D "$dir/it.head" -o "$dir/it.body" "${@:2}" "$1"
}
says() { get "$1" && [ "$(cat "$dir/it.body")" = "$2" ]; }
went_through() { head_says Via "1.1 retort"; }
logged() {
    for _ in $(seq 50); do
        if grep -F "\"url\":\"$1\"" "$dir/$how.log" | grep -q "\"result\":\"$2\""; then return; fi
        sleep 0.1
    done
    return 1
}
is_refused() { ! get "$1" 2>"$dir/it.error" || grep -q "^HTTP/1.1 403" "$dir/it.head"; }

# check_family WHAT HOST SOURCE: the server is to see this source.
check_family() {
    verify "$how, $1: http, the server sees $3" says "http://$2/$how" "$3"
    verify "$how, $1: http went through the proxy" went_through
    verify "$how, $1: http again" says "http://$2/$how" "$3"
    verify "$how, $1: a hit" logged "http://$2/$how" HIT
    verify "$how, $1: https, the server sees $3" says "https://$2/" "$3"
    verify "$how, $1: https went through the proxy" logged "$2:443" TUNNEL
    verify "$how, $1: a host that is elsewhere" get "http://$2/other" -H "Host: www.example.com"
    verify "$how, $1: is not stored" logged "http://www.example.com/other" PASS
}

check_one() {
    how=$1
    begin "$how"
    check_family IPv4 10.99.2.2 "$2"
    check_family IPv6 "[fd99:2::2]" "$3"
    verify "$how: the listener itself is closed to clients" is_refused http://10.99.1.1:3130/
    stop_one "${pids[-1]}"
    unset 'pids[-1]'
}

run_checks() {
    check_one redirect 10.99.2.1 fd99:2::1
    check_one tproxy 10.99.1.2 fd99:1::2
    check_one output 10.99.2.1 fd99:2::1
    stop_all
    [ $failures = 0 ] || { say "$failures checks failed; logs are in $dir"; exit 1; }
}

show() {
    begin "$how"
    cat <<TRY
Retort runs on the router. To try it, in another terminal:

    nsenter --net=/proc/$client/ns/net curl -v http://10.99.2.2/          from the client
    nsenter --net=/proc/$client/ns/net curl -vk https://[fd99:2::2]/
    nsenter --net=/proc/$$/ns/net curl -v http://10.99.2.2/               from the router
    nsenter --net=/proc/$$/ns/net nft list ruleset
    tail -f $dir/$how.log

Ctrl-C ends it.
TRY
    wait_for_the_end
}

stage_begin transparent "${options[@]}"
make_network
start_server
if [ $check = yes ]; then run_checks; else show; fi
