#!/bin/bash
# Retort and its services on two hosts with TLS between them, on one machine, for trying it: two network namespaces are the hosts.
# One has nginx as the origin and Retort, the other c-icap with the services. As root:
#
#     examples/two-hosts/run.sh            installs what is missing, builds, starts it all, says what to
#                                          try, and stops it all again on Ctrl-C
#     examples/two-hosts/run.sh --check    fetches pictures instead, cuts the link between the hosts while clients are
#                                          waiting, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/two-hosts. The namespaces end with the script.
here=$(cd "$(dirname "$0")" && pwd)
# The script itself runs on the proxy's host.
[ "${PROXY_HOST:-}" = yes ] || exec env PROXY_HOST=yes unshare --net "$0" "$@"
source "$here/../stage.sh"
packages=network
services_host=10.99.7.2

# ---- the network and who may talk -------------------------------------------------------------

make_network() {
    ip link set lo up
    start services unshare --net sleep infinity
    services=${pids[-1]}
    until [ "$(readlink "/proc/$services/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
    ip link add wire type veth peer name eth0 netns "$services"
    ip link set wire up
    ip address add 10.99.7.1/24 dev wire
    there ip link set lo up
    there ip link set eth0 up
    there ip address add "$services_host/24" dev eth0
}

# there COMMAND...: on the services' host.
there() { nsenter --net="/proc/$services/ns/net" "$@"; }

# signed NAME SUBJECT-ALTERNATIVE-NAME: a key and a certificate of the authority of the hosts.
signed() {
    new_key -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.csr"
    echo "subjectAltName=$2" >"$dir/$1.ext"
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/hosts-ca.pem" -CAkey "$dir/hosts-ca.key" -CAcreateserial -days 30 \
        -extfile "$dir/$1.ext" -out "$dir/$1.pem" 2>>"$dir/openssl.out"
}

make_certificates() {
    new_key -x509 -subj "/CN=Our hosts" -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$dir/hosts-ca.key" -out "$dir/hosts-ca.pem"
    signed services "IP:$services_host"
    signed proxy DNS:proxy.example
    new_key -x509 -subj "/CN=a stranger" -keyout "$dir/stranger.key" -out "$dir/stranger.pem"
}

# ---- configuration ----------------------------------------------------------------------------

configure_all() {
    origin_port=$(port 9000) proxy_port=$(port 3128) icap_port=1344
    configure_site 'add_header Cache-Control "no-store";' >"$dir/nginx.conf"
    fill retort.conf.in PORT="$proxy_port" SERVICES="$services_host" >"$dir/retort.conf"
    configure_helperd >"$dir/helperd.conf"
    # In clear to its own host only; to others by TLS, and only to those whose certificate our authority has signed.
    { configure_cicap
      echo "TlsPort $services_host:11344 cert=$dir/services.pem key=$dir/services.key client_ca=$dir/hosts-ca.pem cafile=$dir/hosts-ca.pem"
    } >"$dir/c-icap.conf"
}

start_services_there() {
    start helperd nsenter --net="/proc/$services/ns/net" "$build/icap-services/retort-helperd" -f "$dir/helperd.conf"
    start c-icap nsenter --net="/proc/$services/ns/net" c-icap -N -f "$dir/c-icap.conf"
    for _ in $(seq 100); do
        if (exec 3<>"/dev/tcp/$services_host/11344") 2>/dev/null; then return; fi
        sleep 0.1
    done
    say "c-icap did not start; its words are in $dir/c-icap.out"
    exit 1
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    local here="nsenter --net=/proc/$$/ns/net"
    cat <<TEXT

Retort runs on one host, its services on another. In another window, as root:

    $here curl -x http://127.0.0.1:$proxy_port --noproxy '' -o photo.jpg http://127.0.0.1:$origin_port/china.jpg      a gray photo
    $build/proxy/retortctl -s $dir/retort.sock services
    nsenter --net=/proc/$services/ns/net ip link set eth0 down      cuts the link: photos are in colour, and come at once
    nsenter --net=/proc/$services/ns/net ip link set eth0 up        gray again after a second or two

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

fetch() { fetch_through "http://127.0.0.1:$proxy_port" "http://127.0.0.1:$origin_port/$1"; }
# A handshake and an OPTIONS request with this certificate, or none; c-icap's answer to a stranger is no answer.
answers_with() {
    local certificate=()
    if [ -n "$1" ]; then certificate=(-cert "$dir/$1.pem" -key "$dir/$1.key"); fi
    { printf 'OPTIONS icap://services/gray ICAP/1.0\r\nHost: services\r\n\r\n'; sleep 0.5; } |
        timeout 3 openssl s_client -connect "$services_host:11344" -CAfile "$dir/hosts-ca.pem" -quiet "${certificate[@]}" >"$dir/s_client.out" 2>&1 || true
    grep -q '^ICAP/1.0 200' "$dir/s_client.out"
}
in_clear() { curl -sS --max-time 2 --noproxy '*' "http://$services_host:1344/" >"$dir/curl.out" 2>&1; }
said() { python3 -c "import json; print(json.load(open('$dir/visits.json'))['$1'])"; }
becomes_gray() {
    for _ in $(seq 50); do
        if fetch china.jpg && jpeg_is_gray china.jpg; then return; fi
        sleep 0.2
    done
    return 1
}

# Eight clients fetch pictures while the link is cut and mended.
check_cut() {
    local visitors
    start visits python3 "$here/visits.py" "$proxy_port" "http://127.0.0.1:$origin_port/flower.jpg" 8 "$dir/times" "$dir/visits.json"
    visitors=${pids[-1]}
    sleep 1
    date +%s.%N >"$dir/times"
    there ip link set eth0 down
    sleep 3
    verify "link cut: a photo at once" fetch china.jpg
    verify "link cut: as it is" is_the_file china.jpg
    verify "link cut: retortctl says so" ctl_says down -s "$dir/retort.sock" services
    date +%s.%N >>"$dir/times"
    there ip link set eth0 up
    verify "link mended: gray again" becomes_gray
    kill -TERM "$visitors"
    wait "$visitors" || true
    unset 'pids[-1]'
    verify "eight clients all the while: $(said visits) visits, each with 200" [ "$(said statuses)" = "[200]" ]
}
cost_little() { [ "$(said longest)" -lt 1000 ]; }

run_checks() {
    verify "photo: fetched" fetch china.jpg
    # A busy machine needs longer than connect_timeout for the first handshake now and then; then a photo stays as it is.
    verify "photo: gray, its luminance untouched" becomes_gray
    verify "services: answer the proxy's certificate" answers_with proxy
    verify "services: answer nobody without a certificate" not answers_with ""
    verify "services: answer no stranger" not answers_with stranger
    verify "services: not reachable in clear" not in_clear
    check_cut
    # A busy machine holds up the clients too: what costs a second by itself does so again.
    if ! cost_little; then check_cut; fi
    verify "link cut: of $(said waiting) visits the longest wait was $(said longest) ms" cost_little
}

stage_begin two-hosts "$@"
make_network
make_certificates
make_site
configure_all
start_nginx
start_services_there
start_retort
check_or_show
