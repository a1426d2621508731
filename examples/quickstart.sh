#!/bin/bash
# The whole of Retort on one machine, for trying it: nginx as the origin with real pages and images,
# c-icap with the adaptation services, their helper processes, and the proxy. On a fresh Debian 12 or 13,
# as root or with sudo:
#
#     examples/quickstart.sh            installs what is missing, builds, starts it all, says what to
#                                       try, and stops it all again on Ctrl-C
#     examples/quickstart.sh --check    fetches everything through the proxy instead, verifies each
#                                       adaptation on the bytes, prints a table; 0 when all is well
#
#     --inside           runs the services inside the proxy, without c-icap; with --check as well
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/quickstart, with --inside under DIR/quickstart-inside.
places="icap inside"
source "$(dirname "$0")/stage.sh"

# ---- configuration ----------------------------------------------------------------------------

configure_all() {
    choose_ports origin:9000 icap:1344 proxy:3128 reverse:8080 https:9443 admin:3129
    configure_site >"$dir/nginx.conf"
    make_token
    configure_retort >"$dir/retort.conf"
}

# For the page and retortctl: its owner alone can read it.
make_token() {
    (umask 077 && openssl rand -hex 32 >"$dir/token" && echo "you admin $(cat "$dir/token")" >"$dir/tokens")
}

configure_retort() {
    cat <<RETORT
workers = 1
listen "127.0.0.1:$proxy_port" { mode = forward  local_destinations = allow }
listen "127.0.0.1:$reverse_port" { mode = reverse }
map "/" { origin = "http://127.0.0.1:$origin_port/" }
cache { memory = "64MB" }
access_log "$dir/access.log" { format = json }
admin { listen = "127.0.0.1:$admin_port"  token_file = "$dir/tokens"  helpers = "$dir/helperd.sock"  history_step = "2s" }

# TLS connections of clients are opened; examples/intercept shows more of it.
connect_ports = { $https_port }
authority { certificate = "$dir/ca.pem"  key = "$dir/ca.key" }
intercept all { action = bump }
origin { ca_file = "$dir/web.pem" }

$(service_of adremover point = reqmod_precache)
$(service_of gray point = respmod_precache)
$(service_of inject point = respmod_precache "" preview_wait = '"100ms"')
$(service_of gzip point = respmod_precache "" preview_wait = '"100ms"')

url_class images { path_regex = "(?i)\\\\.(jpe?g|gif|png)\$" }
url_class texts { content_type = { "text/html", "text/plain", "text/css", "application/javascript" } }
adapt all { services = { adremover } }
adapt images { services = { gray } }
adapt texts { services = { inject, gzip } }
RETORT
}

# service_of NAME OPTION...: its section, for the place where the services run.
service_of() {
    local name=$1 where="icap_service $1 { uri = \"icap://127.0.0.1:$icap_port/$1\""
    shift
    if [ $place = inside ]; then where="service $name { module = \"$build/icap-services/.libs/$name.so\"$(inside_options "$name")"; fi
    echo "$where  $*  bypass = true  timeout = \"5s\" }"
}

# What c-icap's configuration has otherwise.
inside_options() {
    case $1 in
    adremover) echo "  settings = { List = \"$dir/rules.txt\" }" ;;
    gray) echo "  helpers = \"$dir/helperd.sock\"" ;;
    inject) echo "  helpers = \"$dir/helperd.sock\"  settings = { Scope = shared }" ;;
    esac
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    cat <<TEXT

Retort runs. In another window:

    curl -x http://127.0.0.1:$proxy_port --noproxy '' -o photo.jpg http://127.0.0.1:$origin_port/china.jpg      a gray photo
    curl -x http://127.0.0.1:$proxy_port --noproxy '' --compressed http://127.0.0.1:$origin_port/               a page with a text inserted, sent compressed
    curl -x http://127.0.0.1:$proxy_port --noproxy '' -o ad.gif http://127.0.0.1:$origin_port/ads/banner.gif    a blank image instead of an ad
    curl -x http://127.0.0.1:$proxy_port --noproxy '' --cacert $dir/ca.pem https://localhost:$https_port/
                                                                                       the same page by https, opened by the proxy and adapted
    curl --noproxy '*' http://127.0.0.1:$reverse_port/                                   the same site in reverse mode

In a browser: open http://127.0.0.1:$reverse_port/ , or set 127.0.0.1 port $proxy_port as HTTP proxy
(and, for addresses of this machine, clear "no proxy for"; in Firefox set
network.proxy.allow_hijacking_localhost to true).

The page: http://127.0.0.1:$admin_port/   It asks for a token: $(cat "$dir/token")
docs/START.md walks through it.

    tail -f $dir/access.log                           one line a request: HIT, MISS, services and times
    $build/proxy/retortctl -s 127.0.0.1:$admin_port -t $dir/token status
    $build/proxy/retortctl -s 127.0.0.1:$admin_port -t $dir/token services
    $build/proxy/retortctl -H $dir/helperd.sock helpers
    $build/proxy/retortctl -H $dir/helperd.sock helpers renice gray 19

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

url() { echo "http://127.0.0.1:$origin_port/$1"; }

# fetch NAME PATH [CURL OPTIONS]: into NAME.body and NAME.head.
fetch() {
    local name=$1 path=$2
    shift 2
    curl -sS --max-time 30 --noproxy '' -x "http://127.0.0.1:$proxy_port" -D "$dir/$name.head" -o "$dir/$name.body" "$@" "$(url "$path")"
}

# The newest access log entry about a path: its result, and how many response services were asked.
logged() {
    python3 - "$dir/access.log" "$(url "$1")" <<'PYTHON'
import json, sys, time
for _ in range(50):
    entries = [json.loads(line) for line in open(sys.argv[1])]
    mine = [e for e in entries if e["url"] == sys.argv[2] or e["url"].endswith("/blank.gif") and "/ads/" in sys.argv[2]]
    if mine:
        break
    time.sleep(0.1)
print(mine[-1]["result"], sum(v["service"] != "adremover" for v in mine[-1]["icap"]))
PYTHON
}

# How many responses services were given, of which c-icap has a log, and else the proxy a number.
responses_adapted() {
    if [ $place = icap ]; then
        grep -c RESPMOD "$dir/c-icap-access.log" || true
    else
        "$build/proxy/retortctl" -s "127.0.0.1:$admin_port" -t "$dir/token" metrics |
            awk '/^retort_icap_service_requests_total/ && !/adremover/ { sum += $2 } END { print sum + 0 }'
    fi
}

# A second fetch must be a hit with the same bytes, and no service must have been asked.
is_hit_without_services() {
    local path=$1 before after
    shift
    sleep 0.3
    before=$(responses_adapted)
    cp "$dir/it.body" "$dir/first.body"
    fetch it "$path" "$@" || return
    sleep 0.3
    after=$(responses_adapted)
    [ "$(logged "$path")" = "HIT 0" ] && [ "$before" = "$after" ] && cmp -s "$dir/it.body" "$dir/first.body"
}

unzipped_is() { gzip -dc <"$dir/it.body" | cmp -s - "$dir/site/$1"; }
unzipped_without_text_is() {
    gzip -dc <"$dir/it.body" | sed 's|<meta name="inserted-by-retort" content="127.0.0.1">||' | cmp -s - "$dir/site/$1"
}
origin_was_not_asked() { ! grep -q "$1" "$dir/nginx-access.log"; }
logged_is() { [ "$(logged "$1" | cut -d' ' -f1)" = "$2" ]; }

check_images() {
    local name
    for name in china.jpg flower.jpg; do
        verify "$name: fetched" fetch it "$name"
        verify "$name: gray, its luminance untouched" jpeg_is_gray "$name"
        verify "$name: second time a hit, without services" is_hit_without_services "$name"
    done
    name=Newtons_cradle_animation_book_2.gif
    verify "animated GIF: fetched" fetch it "$name"
    verify "animated GIF: gray in every frame" gif_is_gray
    verify "animated GIF: all frames there" gif_has_all_frames "$name"
    verify "animated GIF: second time a hit, without services" is_hit_without_services "$name"
    verify "PNG: fetched" fetch it benchRGB.png
    verify "PNG: gray" png_is_gray
    verify "PNG: second time a hit, without services" is_hit_without_services benchRGB.png
}

check_texts() {
    local accept=(-H "Accept-Encoding: gzip")
    verify "large text: fetched" fetch it large.txt "${accept[@]}"
    verify "large text: compressed" head_says Content-Encoding gzip
    verify "large text: decompressed it is the original" unzipped_is large.txt
    verify "large text: second time a hit, without services" is_hit_without_services large.txt "${accept[@]}"
    verify "page: fetched" fetch it index.html
    verify "page: the client's text at the end of its head" text_in_place
    verify "page: second time a hit, without services" is_hit_without_services index.html
    verify "long page: fetched" fetch it management.html "${accept[@]}"
    verify "long page: compressed, text inserted, the rest original" unzipped_without_text_is management.html
    verify "long page: second time a hit, without services" is_hit_without_services management.html "${accept[@]}"
}

check_ads() {
    verify "ad: fetched" fetch it ads/banner.gif
    verify "ad: replaced by a blank image" is_blank
    verify "another ad: fetched" fetch it ads/other.gif
    verify "another ad: the same blank image" is_blank
    verify "another ad: a hit" logged_is ads/other.gif HIT
    verify "ads: the origin was not asked" origin_was_not_asked /ads/
}

check_https() {
    verify "https page: fetched, under a certificate of the proxy" fetch_https
    verify "https page: the client's text at the end of its head" text_in_place
    verify "https page: second time a hit" https_hit
}
fetch_https() {
    curl -sS --max-time 30 --noproxy '' -x "http://127.0.0.1:$proxy_port" --cacert "$dir/ca.pem" -D "$dir/it.head" -o "$dir/it.body" \
        "https://localhost:$https_port/index.html"
}
https_hit() {
    local before
    before=$(wc -l <"$dir/nginx-access.log")
    cp "$dir/it.body" "$dir/first.body"
    fetch_https && cmp -s "$dir/it.body" "$dir/first.body" && [ "$(wc -l <"$dir/nginx-access.log")" = "$before" ]
}

check_rest() {
    verify "reverse mode: the page, adapted too" reverse_page
    verify "retortctl status" ctl_says client_requests -s "127.0.0.1:$admin_port" -t "$dir/token" status
    verify "retortctl status: not without the token" asks_for_the_token
    verify "the page" page_is_there
    verify "retortctl services: the four are up, $place" all_are_up
    verify "retortctl helpers" ctl_says gray -H "$dir/helperd.sock" helpers
}
all_are_up() {
    local where=icap://
    if [ $place = inside ]; then where=module:; fi
    [ "$("$build/proxy/retortctl" -s "127.0.0.1:$admin_port" -t "$dir/token" services | grep -c "^ *$where.* up ")" = 4 ]
}
asks_for_the_token() {
    not "$build/proxy/retortctl" -s "127.0.0.1:$admin_port" status 2>"$dir/refused.out" >"$dir/status.out" &&
        grep -q -- --token-file "$dir/refused.out"
}
page_is_there() {
    curl -sS --max-time 30 --noproxy '*' -o "$dir/it.body" "http://127.0.0.1:$admin_port/" && page_says "<title>Retort"
}
reverse_page() {
    curl -sS --max-time 30 --noproxy '*' -o "$dir/it.body" "http://127.0.0.1:$reverse_port/index.html" && text_in_place
}

run_checks() {
    check_images
    check_texts
    check_ads
    check_https
    check_rest
}

stage_begin quickstart "$@"
make_site
make_web localhost
make_authority "The proxy of the quick start"
configure_all
start_nginx
start_services
start_retort
check_or_show
