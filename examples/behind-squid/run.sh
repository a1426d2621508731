#!/bin/bash
# Retort behind Squid, on one machine, for trying it: nginx as the origin, c-icap with the services, Retort, and Squid with Retort
# as its parent. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/behind-squid/run.sh            installs what is missing, builds, starts it all, says what to
#                                             try, and stops it all again on Ctrl-C
#     examples/behind-squid/run.sh --check    fetches pages through both instead, prints a table; 0 when all
#                                             is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/behind-squid; what Squid writes is in a folder under /tmp that ends with the script.
source "$(dirname "$0")/../stage.sh"
packages=squid

configure_all() {
    local user=
    choose_ports origin:9000 https:9443 icap:1344 proxy:8128 squid:3128
    configure_site 'add_header Cache-Control "max-age=3600";' "location /upload { return 204; }" >"$dir/nginx.conf"
    fill retort.conf.in PORT="$proxy_port" ICAP="$icap_port" CONNECT="$https_port" >"$dir/retort.conf"
    if [ "$(id -u)" = 0 ]; then user="cache_effective_user proxy"; fi
    # Squid writes as its own user, which may not reach the build tree.
    squid_dir=$(mktemp -d "${TMPDIR:-/tmp}/behind-squid-XXXXXX")
    scratch+=("$squid_dir")
    if [ "$(id -u)" = 0 ]; then chown proxy "$squid_dir"; fi
    fill squid.conf.in DIR="$squid_dir" PORT="$squid_port" RETORT="$proxy_port" USER="$user" >"$dir/squid.conf"
    echo "||127.0.0.1^*/ads/" >>"$dir/rules.txt"
}

start_squid() {
    start squid env XDG_RUNTIME_DIR="$squid_dir" squid -N -f "$dir/squid.conf"
    wait_port squid "$squid_port"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    local through="curl -x http://127.0.0.1:$squid_port --noproxy ''"
    cat <<TEXT

Squid runs, with Retort behind it. In another window:

    $through -o photo.jpg http://127.0.0.1:$origin_port/china.jpg      a gray photo; the second time from Retort's cache
    $through -o ad.gif http://127.0.0.1:$origin_port/ads/banner.gif    a blank image instead of an ad
    $through --cacert $dir/web.pem https://localhost:$https_port/        https passes both, untouched

    tail -f $squid_dir/squid-access.log $dir/access.log      the same client in both

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

# fetch PATH [CURL OPTIONS]
fetch() { fetch_through "http://127.0.0.1:$squid_port" "http://127.0.0.1:$origin_port/$1" "${@:2}"; }
# The newest line of Retort's log has this.
logged() {
    for _ in $(seq 30); do
        if tail -1 "$dir/access.log" | grep -q "$1"; then return; fi
        sleep 0.1
    done
    return 1
}

as_client() { fetch_through "http://127.0.0.1:$proxy_port" "http://127.0.0.1:$origin_port/" -H "X-Forwarded-For: $1"; }

run_checks() {
    verify "photo: fetched" fetch china.jpg
    verify "photo: gray, its luminance untouched" jpeg_is_gray china.jpg
    verify "photo: both proxies are named" head_says Via ".*retort.*squid"
    verify "photo: second time" fetch china.jpg
    verify "photo: second time a hit of Retort" logged '"result": *"HIT"'
    verify "the client is who asked Squid" fetch index.html -H "X-Forwarded-For: 198.51.100.7"
    verify "the client is who asked Squid: what it says of itself is not believed" logged '"client": *"127.0.0.1"'
    verify "ad: fetched" fetch ads/banner.gif
    verify "ad: replaced by a blank image" is_blank
    verify "large text: fetched" fetch large.txt -H "Accept-Encoding: gzip"
    verify "large text: compressed" head_says Content-Encoding gzip
    verify "upload" fetch upload -T "$dir/site/index.html"
    verify "upload: 204" status_is 204
    verify "https: through both" fetch_through "http://127.0.0.1:$squid_port" "https://localhost:$https_port/index.html" --cacert "$dir/web.pem"
    verify "https: as it is" is_the_file index.html
    verify "https: Retort has tunnelled it" logged '"result": *"TUNNEL"'
    verify "a client of the network, as Squid would say" as_client 192.168.1.7
    verify "a client of the network: is in the log" logged '"client": *"192.168.1.7"'
    verify "a client from elsewhere, as Squid would say" as_client 203.0.113.9
    verify "a client from elsewhere: 403" status_is 403
}

stage_begin behind-squid "$@"
make_site
make_web localhost
configure_all
start_nginx
start_services
start_retort
start_squid
check_or_show
