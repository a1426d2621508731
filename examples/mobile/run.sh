#!/bin/bash
# A proxy for a slow or expensive link, on one machine, for trying it: nginx with a book of real pages as the origin, c-icap
# with the services, and Retort. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/mobile/run.sh            installs what is missing, builds, starts it all, says what to
#                                       try, and stops it all again on Ctrl-C
#     examples/mobile/run.sh --check    reads fifty pages with and without the proxy instead, counts the
#                                       bytes, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/mobile.
source "$(dirname "$0")/../stage.sh"
pages=50
more_data=debian-handbook

configure_all() {
    choose_ports origin:9000 icap:1344 proxy:3128
    configure_origin >"$dir/nginx.conf"
    fill retort.conf.in PORT="$proxy_port" ICAP="$icap_port" >"$dir/retort.conf"
    touch "$dir/texts.tsv"
    cp "$data/lists/easylist.txt" "$dir/rules.txt"
}

configure_origin() {
    configure_nginx
    cat <<NGINX
    server {
        listen 127.0.0.1:$origin_port;
        root $data/book;
    }
}
NGINX
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    cat <<TEXT

Retort runs. In another window:

    echo $data/book | python3 $here/visit.py 127.0.0.1:$origin_port $pages                           without the proxy
    echo $data/book | python3 $here/visit.py 127.0.0.1:$origin_port $pages 127.0.0.1:$proxy_port      with it

In a browser with 127.0.0.1 port $proxy_port as HTTP proxy: http://127.0.0.1:$origin_port/index.html

    $build/proxy/retortctl -s $dir/retort.sock services      what each service has made of how many bytes

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

# visit NAME [PROXY]: a phone that has nothing yet; what it says goes to NAME.json.
visit() { echo "$data/book" | python3 "$here/visit.py" "127.0.0.1:$origin_port" $pages "${@:2}" >"$dir/$1.json" 2>"$dir/$1.out"; }
said() { python3 -c "import json; print(json.load(open('$dir/$1.json'))['$2'])"; }
adapted() { grep -c RESPMOD "$dir/c-icap-access.log"; }

# at_most WHAT PERCENT PART WHOLE
at_most() { verify "$1: $3 of $4 bytes ($((100 - 100 * $3 / $4)) % saved)" [ $((100 * $3)) -le $(($2 * $4)) ]; }

adapted_each_once() { [ "$(adapted)" = "$(said first files)" ]; }

run_checks() {
    verify "fifty pages without the proxy" visit alone
    verify "fifty pages with the proxy" visit first "127.0.0.1:$proxy_port"
    verify "all fifty, with style sheets and pictures" [ "$(said first files)" = "$(said alone files)" ]
    verify "each text is the same; each picture is one, and no larger" [ "$(said first wrong)" = "[]" ]
    at_most "first visit" 40 "$(said first bytes)" "$(said alone bytes)"
    verify "another phone" visit second "127.0.0.1:$proxy_port"
    sleep 0.3 # what was adapted once too often would be in the log by then
    verify "another phone: no image and no text was adapted again" soon adapted_each_once
    at_most "second visit of a phone" 10 "$(said first again)" "$(said alone bytes)"
    verify "retortctl services" ctl_says gray -s "$dir/retort.sock" services
}

stage_begin mobile "$@"
configure_all
start_nginx
start_services
start_retort
check_or_show
