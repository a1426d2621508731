#!/bin/bash
# The whole of Retort on one machine, for trying it: nginx as the origin with real pages and images,
# c-icap with the adaptation services, their helper processes, and the proxy. On a fresh Debian 12,
# as root or with sudo:
#
#     examples/quickstart.sh            installs what is missing, builds, starts it all, says what to
#                                       try, and stops it all again on Ctrl-C
#     examples/quickstart.sh --check    fetches everything through the proxy instead, verifies each
#                                       adaptation on the bytes, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/quickstart.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$source_dir/build
check=no
install=yes
while [ $# -gt 0 ]; do
    case $1 in
    --check) check=yes ;;
    --no-install) install=no ;;
    --builddir) mkdir -p "$2"; build=$(cd "$2" && pwd); shift ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
dir=$build/quickstart
data=$source_dir/tests/data/cache

say() { echo "quickstart: $*" >&2; }

# ---- install, fetch, build --------------------------------------------------------------------

prepare() {
    if [ $install = yes ]; then "$source_dir/tests/install.sh" try >&2; fi
    "$source_dir/tests/data/fetch.sh"
    if [ ! -x "$build/proxy/retort" ] || [ ! -x "$build/icap-services/retort-helperd" ]; then build_all; fi
}

build_all() {
    say "building in $build (a minute or two; log: $build/quickstart-build.log)"
    mkdir -p "$build"
    if ! build_quietly >"$build/quickstart-build.log" 2>&1; then
        tail -20 "$build/quickstart-build.log" >&2
        say "the build failed"
        exit 1
    fi
}

build_quietly() {
    [ -x "$source_dir/configure" ] || "$source_dir/autogen.sh" || return
    cd "$build" || return
    [ -e Makefile ] || "$source_dir/configure" || return
    make -j2
}

# ---- the site ---------------------------------------------------------------------------------

make_site() {
    mkdir -p "$dir/site/ads"
    cp "$data"/photos/*.jpg "$data/gif/Newtons_cradle_animation_book_2.gif" "$data/png/benchRGB.png" \
        "$data/html/management.html" "$dir/site/"
    cp "$data/lists/easylist.txt" "$dir/site/large.txt"
    cp "$data/gif/postcard.gif" "$dir/site/ads/banner.gif"
    cat >"$dir/site/index.html" <<'HTML'
<!doctype html>
<html>
<head>
<title>A page with ads and pictures</title>
</head>
<body>
<h1>A page with ads and pictures</h1>
<p>Through Retort the pictures are gray, the ad is a blank image, and a line was inserted into this
page's head (look at its source).</p>
<p><img src="/ads/banner.gif" alt="an ad"></p>
<p><img src="/china.jpg" alt="JPEG"> <img src="/flower.jpg" alt="JPEG"></p>
<p><img src="/Newtons_cradle_animation_book_2.gif" alt="animated GIF"> <img src="/benchRGB.png" alt="PNG"></p>
<p><a href="/management.html">A long page</a>, <a href="/large.txt">a large text</a>: both are compressed on their way.</p>
</body>
</html>
HTML
    { cat "$data/lists/easylist.txt"; echo "||127.0.0.1^*/ads/"; } >"$dir/rules.txt"
    printf 'default\t<meta name="inserted-by-retort" content="%%{ip}">\n' >"$dir/texts.tsv"
}

# ---- configuration ----------------------------------------------------------------------------

# port WANTED: that port if it is free, else another one.
port() {
    python3 - "$1" <<'PYTHON'
import socket, sys
for wanted in (int(sys.argv[1]), 0):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            continue
        print(probe.getsockname()[1])
        break
PYTHON
}

configure_all() {
    if [ $check = yes ]; then
        origin_port=$(port 0) icap_port=$(port 0) proxy_port=$(port 0) reverse_port=$(port 0)
    else
        origin_port=$(port 9000) icap_port=$(port 1344) proxy_port=$(port 3128) reverse_port=$(port 8080)
    fi
    configure_nginx >"$dir/nginx.conf"
    configure_helperd >"$dir/helperd.conf"
    configure_cicap >"$dir/c-icap.conf"
    configure_retort >"$dir/retort.conf"
}

configure_nginx() {
    if [ "$(id -u)" = 0 ]; then echo "user root;"; fi
    cat <<NGINX
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/nginx-error.log;
events { }
http {
    access_log $dir/nginx-access.log;
    client_body_temp_path $dir/nginx-body;
    proxy_temp_path $dir/nginx-proxy;
    fastcgi_temp_path $dir/nginx-fastcgi;
    uwsgi_temp_path $dir/nginx-uwsgi;
    scgi_temp_path $dir/nginx-scgi;
    types { text/html html; text/plain txt; image/jpeg jpg; image/gif gif; image/png png; }
    server {
        listen 127.0.0.1:$origin_port;
        root $dir/site;
        add_header Cache-Control "max-age=3600";
    }
}
NGINX
}

configure_helperd() {
    sed -e "s|@DIR@|$dir|g" -e "s|@BUILD@|$build|g" \
        -e "s|/text-helper\"|/text-helper\", \"--file\", \"$dir/texts.tsv\"|" "$source_dir/conf/helperd-build.conf.in"
}

configure_cicap() {
    sed -e "s|@DIR@|$dir|g" -e "s|@BUILD@|$build|g" -e "s|@PORT@|$icap_port|g" "$source_dir/conf/c-icap-build.conf.in"
    # The inserted text is the same for all clients here, so that pages may be cached for all.
    echo "inject.Scope shared"
}

configure_retort() {
    cat <<RETORT
workers = 1
listen "127.0.0.1:$proxy_port" { mode = forward  local_destinations = allow }
listen "127.0.0.1:$reverse_port" { mode = reverse }
map "/" { origin = "http://127.0.0.1:$origin_port/" }
cache { memory = "64MB" }
access_log "$dir/access.log" { format = json }
admin { listen = "$dir/retort.sock" }

icap_service adremover { uri = "icap://127.0.0.1:$icap_port/adremover"  point = reqmod_precache  bypass = true  timeout = "5s" }
icap_service gray { uri = "icap://127.0.0.1:$icap_port/gray"  point = respmod_precache  bypass = true  timeout = "5s" }
icap_service inject { uri = "icap://127.0.0.1:$icap_port/inject"  point = respmod_precache  bypass = true  timeout = "5s"  preview_wait = "100ms" }
icap_service gzip { uri = "icap://127.0.0.1:$icap_port/gzip"  point = respmod_precache  bypass = true  timeout = "5s"  preview_wait = "100ms" }

url_class images { path_regex = "(?i)\\\\.(jpe?g|gif|png)\$" }
url_class texts { content_type = { "text/html", "text/plain", "text/css", "application/javascript" } }
adapt all { services = { adremover } }
adapt images { services = { gray } }
adapt texts { services = { inject, gzip } }
RETORT
}

# ---- processes --------------------------------------------------------------------------------

pids=()

start() {
    local name=$1
    shift
    # A session of its own: what it forks ends with it, and Ctrl-C reaches only this script.
    setsid "$@" >"$dir/$name.out" 2>&1 </dev/null &
    pids+=($!)
}

stop_all() {
    trap - EXIT INT TERM
    local index
    for ((index = ${#pids[@]} - 1; index >= 0; index--)); do
        stop_one "${pids[index]}"
    done
}

# Asks it to end, waits, then ends its whole process group.
stop_one() {
    kill -TERM "$1" 2>/dev/null || true
    for _ in $(seq 150); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL -- "-$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

wait_port() {
    for _ in $(seq 100); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; then return; fi
        sleep 0.1
    done
    say "$1 did not start; its words:"
    tail -20 "$dir/$1.out" >&2
    exit 1
}

start_all() {
    trap stop_all EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start nginx nginx -e "$dir/nginx-error.log" -c "$dir/nginx.conf"
    start helperd "$build/icap-services/retort-helperd" -f "$dir/helperd.conf"
    start c-icap c-icap -N -f "$dir/c-icap.conf"
    wait_port nginx "$origin_port"
    wait_port c-icap "$icap_port"
    start retort "$build/proxy/retort" -f "$dir/retort.conf"
    wait_port retort "$proxy_port"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    cat <<TEXT

Retort runs. In another window:

    curl -x http://127.0.0.1:$proxy_port -o photo.jpg http://127.0.0.1:$origin_port/china.jpg      a gray photo
    curl -x http://127.0.0.1:$proxy_port --compressed http://127.0.0.1:$origin_port/               a page with a text inserted, sent compressed
    curl -x http://127.0.0.1:$proxy_port -o ad.gif http://127.0.0.1:$origin_port/ads/banner.gif    a blank image instead of an ad
    curl http://127.0.0.1:$reverse_port/                                                 the same site in reverse mode

In a browser: open http://127.0.0.1:$reverse_port/ , or set 127.0.0.1 port $proxy_port as HTTP proxy
(and, for addresses of this machine, clear "no proxy for"; in Firefox set
network.proxy.allow_hijacking_localhost to true).

    tail -f $dir/access.log                           one line a request: HIT, MISS, services and times
    $build/proxy/retortctl -s $dir/retort.sock status
    $build/proxy/retortctl -H $dir/helperd.sock helpers
    $build/proxy/retortctl -H $dir/helperd.sock helpers renice gray 19

Ctrl-C stops everything.
TEXT
    # Waits for the signal; ends early when the proxy does.
    wait "${pids[-1]}" || say "retort ended; its words are in $dir/retort.out"
}

# ---- the check --------------------------------------------------------------------------------

failures=0

row() {
    printf '%-58s %s\n' "$1" "$2"
}

# verify WHAT COMMAND...: a row that says ok when the command succeeds.
verify() {
    local what=$1
    shift
    if "$@"; then row "$what" ok; else row "$what" FAILED; failures=$((failures + 1)); fi
}

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

responses_adapted() { grep -c RESPMOD "$dir/c-icap-access.log" || true; }

# A second fetch must be a hit with the same bytes, and c-icap must not have been asked.
is_hit_without_icap() {
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

pnm_is_gray() { pamfile -allimages | awk '/PPM/ { bad = 1 } /PGM|PBM/ { good = 1 } END { exit bad || !good }'; }

jpeg_is_gray() {
    djpeg -pnm "$dir/it.body" >"$dir/seen.pnm" && djpeg -pnm -grayscale "$dir/site/$1" >"$dir/wanted.pnm" &&
        cmp -s "$dir/seen.pnm" "$dir/wanted.pnm"
}
gif_is_gray() { giftopnm -image=all -quiet "$dir/it.body" | pnm_is_gray; }
gif_has_all_frames() {
    [ "$(giftopnm -image=all -quiet "$dir/it.body" | pamfile -allimages | wc -l)" = \
        "$(giftopnm -image=all -quiet "$dir/site/$1" | pamfile -allimages | wc -l)" ]
}
png_is_gray() { pngtopnm -quiet "$dir/it.body" | pnm_is_gray; }
head_says() { grep -qi "^$1: *$2" "$dir/it.head"; }
unzipped_is() { gzip -dc <"$dir/it.body" | cmp -s - "$dir/site/$1"; }
text_in_place() { grep -q '<meta name="inserted-by-retort" content="127.0.0.1"></head>' "$dir/it.body"; }
unzipped_without_text_is() {
    gzip -dc <"$dir/it.body" | sed 's|<meta name="inserted-by-retort" content="127.0.0.1">||' | cmp -s - "$dir/site/$1"
}
is_blank() { [ "$(giftopnm -quiet "$dir/it.body" | pamfile -size)" = "1 1" ]; }
origin_was_not_asked() { ! grep -q "$1" "$dir/nginx-access.log"; }
logged_is() { [ "$(logged "$1" | cut -d' ' -f1)" = "$2" ]; }

check_images() {
    local name
    for name in china.jpg flower.jpg; do
        verify "$name: fetched" fetch it "$name"
        verify "$name: gray, its luminance untouched" jpeg_is_gray "$name"
        verify "$name: second time a hit, without ICAP" is_hit_without_icap "$name"
    done
    name=Newtons_cradle_animation_book_2.gif
    verify "animated GIF: fetched" fetch it "$name"
    verify "animated GIF: gray in every frame" gif_is_gray
    verify "animated GIF: all frames there" gif_has_all_frames "$name"
    verify "animated GIF: second time a hit, without ICAP" is_hit_without_icap "$name"
    verify "PNG: fetched" fetch it benchRGB.png
    verify "PNG: gray" png_is_gray
    verify "PNG: second time a hit, without ICAP" is_hit_without_icap benchRGB.png
}

check_texts() {
    local accept=(-H "Accept-Encoding: gzip")
    verify "large text: fetched" fetch it large.txt "${accept[@]}"
    verify "large text: compressed" head_says Content-Encoding gzip
    verify "large text: decompressed it is the original" unzipped_is large.txt
    verify "large text: second time a hit, without ICAP" is_hit_without_icap large.txt "${accept[@]}"
    verify "page: fetched" fetch it index.html
    verify "page: the client's text at the end of its head" text_in_place
    verify "page: second time a hit, without ICAP" is_hit_without_icap index.html
    verify "long page: fetched" fetch it management.html "${accept[@]}"
    verify "long page: compressed, text inserted, the rest original" unzipped_without_text_is management.html
    verify "long page: second time a hit, without ICAP" is_hit_without_icap management.html "${accept[@]}"
}

check_ads() {
    verify "ad: fetched" fetch it ads/banner.gif
    verify "ad: replaced by a blank image" is_blank
    verify "another ad: fetched" fetch it ads/other.gif
    verify "another ad: the same blank image" is_blank
    verify "another ad: a hit" logged_is ads/other.gif HIT
    verify "ads: the origin was not asked" origin_was_not_asked /ads/
}

check_rest() {
    verify "reverse mode: the page, adapted too" reverse_page
    verify "retortctl status" ctl_says client_requests -s "$dir/retort.sock" status
    verify "retortctl helpers" ctl_says gray -H "$dir/helperd.sock" helpers
}
ctl_says() {
    local word=$1
    shift
    "$build/proxy/retortctl" "$@" | grep -q "$word"
}
reverse_page() {
    curl -sS --max-time 30 --noproxy '*' -o "$dir/it.body" "http://127.0.0.1:$reverse_port/index.html" && text_in_place
}

# SIGTERM must end each part with status 0.
check_end() {
    local pid=${pids[-1]} status=0
    kill -TERM "$pid"
    wait "$pid" || status=$?
    verify "retort ends with 0 on SIGTERM" [ $status = 0 ]
}

run_checks() {
    check_images
    check_texts
    check_ads
    check_rest
    check_end
    stop_all
    if [ $failures -gt 0 ]; then
        say "$failures checks failed; logs are in $dir"
        exit 1
    fi
    say "all checks passed"
}

prepare
rm -rf "$dir"
mkdir -p "$dir"
make_site
configure_all
start_all
if [ $check = yes ]; then run_checks; else show; fi
