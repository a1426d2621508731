#!/bin/bash
# What the examples share; they read this file, which does nothing by itself: how Retort is built, nginx, c-icap with the
# services, processes and their end, and the rows of a check.
#
#     source "$(dirname "$0")/stage.sh"
#     packages=GROUP                of tests/install.sh; try, if it is not said
#     more_data=SOURCE              of tests/data/fetch.sh, beside what make_site needs
#     places="icap inside"          where the services can run, as --inside says; icap alone, if it is not said
#     stage_begin NAME "$@"         reads the options; sets check, build, data, place (icap or inside), and dir: DIR/NAME or
#                                   DIR/NAME-inside, which is emptied
#     choose_ports NAME:PORT...     sets NAME_port: PORT where it is free; a check takes any
#     fill FILE NAME=VALUE...       prints a template of the example's folder, $here, with @NAME@ and @DIR@ replaced
#     make_site                     what nginx is to serve, in $dir/site
#     configure_site [LINE...]      prints the configuration of an nginx that serves it; lines are added to its server
#     start NAME COMMAND...         what it says is in $dir/NAME.out
#     wait_port NAME PORT
#     verify WHAT COMMAND...        prints a row
#     check_or_show                 calls run_checks, stops everything and ends with 1 when a row was FAILED; or calls show
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$(cd "$(dirname "$0")" && pwd)

say() { echo "$stage: $*" >&2; }

stage_begin() {
    stage=$1
    shift
    build=$source_dir/build
    # Where ./configure was run in the folder of the sources, it is the build tree, and there can be no other.
    if [ -e "$source_dir/config.status" ]; then build=$source_dir; fi
    check=no
    install=yes
    place=icap
    while [ $# -gt 0 ]; do
        case $1 in
        --check) check=yes ;;
        --no-install) install=no ;;
        --inside) if [[ " ${places:-icap} " = *" inside "* ]]; then place=inside; else usage; fi ;;
        --builddir) mkdir -p "$2"; build=$(cd "$2" && pwd); shift ;;
        *) usage ;;
        esac
        shift
    done
    if [ $place = inside ]; then stage=$stage-inside; fi
    dir=$build/$stage
    if [ "$build" = "$source_dir" ]; then dir=$source_dir/build/$stage; fi
    data=$source_dir/tests/data/cache
    prepare
    rm -rf "$dir"
    mkdir -p "$dir"
    trap stop_all EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# The comment at the top of the example.
usage() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 2
}

# ---- install, fetch, build --------------------------------------------------------------------

prepare() {
    if [ $install = yes ]; then "$source_dir/tests/install.sh" "${packages:-try}" >&2; fi
    # shellcheck disable=SC2086
    "$source_dir/tests/data/fetch.sh" scikit-learn golang-src animated-gif-detector haproxy-doc ad-block ${more_data:-}
    if [ ! -x "$build/proxy/retort" ] || [ ! -x "$build/icap-services/retort-helperd" ]; then build_all; fi
}

build_all() {
    say "building in $build (a minute or two; log: $dir-build.log)"
    mkdir -p "$build" "$(dirname "$dir")"
    if ! build_quietly >"$dir-build.log" 2>&1; then
        tail -20 "$dir-build.log" >&2
        say "the build failed"
        if [ "$build" != "$source_dir" ] && [ -e "$source_dir/config.status" ]; then
            say "$source_dir is a build tree itself: run make distclean there, or leave --builddir away"
        fi
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

# A page with ads and pictures of each kind, and long texts; and what the services know of them.
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

# make_web NAME...: an authority for https sites, web.pem, and a certificate of it for these names, web-site.pem.
make_web() {
    local names
    names=$(printf 'DNS:%s,' "$@")
    new_key -x509 -subj "/CN=The web of the example" -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$dir/web.key" -out "$dir/web.pem"
    new_key -subj "/CN=$1" -keyout "$dir/web-site.key" -out "$dir/web-site.csr"
    echo "subjectAltName=${names%,}" >"$dir/web-site.ext"
    openssl x509 -req -in "$dir/web-site.csr" -CA "$dir/web.pem" -CAkey "$dir/web.key" -CAcreateserial -days 30 \
        -extfile "$dir/web-site.ext" -out "$dir/web-site.pem" 2>>"$dir/openssl.out"
}

new_key() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 "$@" 2>>"$dir/openssl.out"; }

# The authority that clients of the proxy trust: ca.pem, and its key.
make_authority() {
    "$build/proxy/retortctl" ca create --certificate "$dir/ca.pem" --key "$dir/ca.key" --name "$1" >"$dir/ca.out"
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

choose_ports() {
    local pair wanted
    for pair in "$@"; do
        wanted=${pair#*:}
        if [ $check = yes ]; then wanted=0; fi
        printf -v "${pair%:*}_port" %s "$(port "$wanted")"
    done
}

fill() {
    local pair words=()
    for pair in "${@:2}" DIR="$dir"; do words+=(-e "s|@${pair%%=*}@|${pair#*=}|g"); done
    sed "${words[@]}" "$here/$1"
}

# configure_nginx: up to the servers, which the example adds, with the last brace.
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
    types { text/html html; text/css css; text/plain txt; image/jpeg jpg; image/gif gif; image/png png; image/svg+xml svg; }
NGINX
}

# On $origin_port, and by https on $https_port where there is one. What may be stored is said, unless lines say it.
configure_site() {
    if [ $# = 0 ]; then set -- 'add_header Cache-Control "max-age=3600";'; fi
    configure_nginx
    echo "    server {"
    printf '        %s\n' "listen 127.0.0.1:$origin_port;" "root $dir/site;"
    if [ -n "${https_port:-}" ]; then
        printf '        %s\n' "listen 127.0.0.1:$https_port ssl;" "ssl_certificate $dir/web-site.pem;" \
            "ssl_certificate_key $dir/web-site.key;"
    fi
    printf '        %s\n' "$@"
    printf '    }\n}\n'
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

# ---- processes --------------------------------------------------------------------------------

pids=()
scratch=() # folders that end with the script

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
    rm -rf "${scratch[@]}"
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

# The socket is there when the helpers can be asked.
wait_socket() {
    for _ in $(seq 100); do
        if [ -S "$2" ]; then return; fi
        sleep 0.1
    done
    say "$1 did not start; its words:"
    tail -20 "$dir/$1.out" >&2
    exit 1
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

# soon COMMAND...: tried until it succeeds, for five seconds: a log is written after the response.
soon() {
    for _ in $(seq 50); do
        if "$@"; then return; fi
        sleep 0.1
    done
    return 1
}

start_services() {
    configure_helperd >"$dir/helperd.conf"
    start helperd "$build/icap-services/retort-helperd" -f "$dir/helperd.conf"
    if [ $place = inside ]; then
        wait_socket helperd "$dir/helperd.sock"
        return
    fi
    configure_cicap >"$dir/c-icap.conf"
    start c-icap c-icap -N -f "$dir/c-icap.conf"
    wait_port c-icap "$icap_port"
}

start_nginx() {
    start nginx nginx -e "$dir/nginx-error.log" -c "$dir/nginx.conf"
    wait_port nginx "$origin_port"
}

start_retort() {
    start retort "$build/proxy/retort" -f "$dir/retort.conf"
    wait_port retort "$proxy_port"
}

# Waits for the signal; ends early when the proxy does.
wait_for_the_end() { wait "${pids[-1]}" || say "retort ended; its words are in $dir/retort.out"; }

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

# fetch_through PROXY URL [CURL OPTIONS]: into it.head and it.body.
fetch_through() {
    local proxy=$1 url=$2
    shift 2
    curl -sS --max-time 30 --noproxy '' -x "$proxy" -D "$dir/it.head" -o "$dir/it.body" "$@" "$url" 2>"$dir/curl.out"
}

# What was fetched last.
not() { ! "$@"; }
page_says() { grep -q "$1" "$dir/it.body"; }
status_is() { grep -a '^HTTP' "$dir/it.head" | tail -1 | grep -q " $1"; }
is_the_file() { cmp -s "$dir/it.body" "$dir/site/$1"; }
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
text_in_place() { grep -q '<meta name="inserted-by-retort" content="127.0.0.1"></head>' "$dir/it.body"; }
is_blank() { [ "$(giftopnm -quiet "$dir/it.body" | pamfile -size)" = "1 1" ]; }

ctl_says() {
    local word=$1
    shift
    "$build/proxy/retortctl" "$@" | grep "$word" >"$dir/ctl.out" # -q would end before it has written all
}

# SIGTERM must end each part with status 0.
check_end() {
    local pid=${pids[-1]} status=0
    kill -TERM "$pid"
    wait "$pid" || status=$?
    verify "retort ends with 0 on SIGTERM" [ $status = 0 ]
}

check_or_show() {
    if [ $check = yes ]; then
        run_checks
        stage_end
    else
        show
    fi
}

stage_end() {
    check_end
    stop_all
    if [ $failures -gt 0 ]; then
        say "$failures checks failed; logs are in $dir"
        exit 1
    fi
    say "all checks passed"
}
