#!/bin/bash
# The content manager, on one machine, for trying it: a site with pictures by nginx, and Retort with the module manager.so. On a fresh
# Debian 12 or 13, as root or with sudo:
#
#     examples/content-manager/run.sh            installs what is missing, builds, starts it all, says what to
#                                                try, and stops it all again on Ctrl-C
#     examples/content-manager/run.sh --check    tries it instead, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/content-manager.
source "$(dirname "$0")/../stage.sh"

configure_all() {
    choose_ports origin:9000 proxy:3128
    configure_site >"$dir/nginx.conf"
    printf '# PATTERN SECONDS\nhttp://127.0.0.1:%s/management*   7200\n' "$origin_port" >"$dir/lifetimes.txt"
    fill retort.conf.in PORT="$proxy_port" MODULE="$build/examples/content-manager/.libs/manager.so" >"$dir/retort.conf"
}

site() { echo "http://127.0.0.1:$origin_port/$1"; }

# command WORD...: what the manager says to it.
command_of() {
    python3 - "$dir/manager.sock" "$*" <<'PYTHON'
import socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.settimeout(30)
    there.connect(sys.argv[1])
    there.sendall(sys.argv[2].encode() + b"\nquit\n")
    while piece := there.recv(65536):
        sys.stdout.buffer.write(piece)
PYTHON
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    cat <<TEXT

Retort runs with the content manager. In another window:

    curl -x http://127.0.0.1:$proxy_port --noproxy '' $(site index.html)    a page: its pictures come too
    tail -f $dir/access.log                                                 who has asked for what
    nc -U $dir/manager.sock                                                 commands: help, query $(site china.jpg), report ...
    echo '*.jpg 60' >>$dir/lifetimes.txt                                     pictures are fresh for a minute from now on
    $build/proxy/retortctl -s $dir/retort.sock cache list

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

fetch() { fetch_through "http://127.0.0.1:$proxy_port" "$(site "$1")" "${@:2}"; }

# soon COMMAND...: it succeeds within some seconds.
soon() {
    for _ in $(seq 100); do
        if "$@"; then return; fi
        sleep 0.1
    done
    return 1
}

says() { # WORD COMMAND...
    command_of "${@:2}" >"$dir/said" && grep -q "$1" "$dir/said"
}

# Was the site asked so often for the file?
asked() { [ "$(grep -c "GET /$1 " "$dir/nginx-access.log")" = "$2" ]; }
socket_is_private() { [ "$(stat -c %a "$dir/manager.sock")" = 600 ]; }
fresh_for() { # FILE LEAST MOST
    local left
    left=$(command_of query "$(site "$1")" | sed -n 's/.*fresh for \([0-9]*\),.*/\1/p')
    [ -n "$left" ] && [ "$left" -ge "$2" ] && [ "$left" -le "$3" ]
}

run_checks() {
    verify "a page" fetch index.html
    verify "a page: as it is" is_the_file index.html
    verify "its pictures: fetched before anybody asks" soon says "done: fresh" query "$(site china.jpg)"
    verify "its pictures: all of them" soon says "done: fresh" query "$(site benchRGB.png)"
    verify "a picture" fetch china.jpg
    verify "a picture: as it is" is_the_file china.jpg
    verify "a picture: the site was asked once" asked china.jpg 1
    verify "the list: a page" fetch management.html
    verify "the list: a page: fresh for two hours" fresh_for management.html 7000 7200
    printf '*.jpg 60\n*/management* 30\n' >"$dir/lifetimes.txt"
    verify "another list: a page that is stored" soon fresh_for management.html 1 30
    verify "another list: a picture that is stored" soon fresh_for flower.jpg 1 60
    verify "socket: for the user of the proxy alone" socket_is_private
    verify "socket: fetch" says "done: MISS, 200" fetch "$(site large.txt)"
    verify "socket: fetch again" says "done: HIT, 200" fetch "$(site large.txt)"
    verify "socket: validate" says "done: REVALIDATED, 304\|done: REVALIDATED, 200" validate "$(site large.txt)"
    verify "socket: expire" says "done: 1 objects" expire "$(site large.txt)" 10
    verify "socket: expire: the lifetime" fresh_for large.txt 1 10
    verify "socket: show" says "A page with ads and pictures" show "$(site index.html)"
    verify "socket: delete" says "done: 1 objects" delete "$(site large.txt)"
    verify "socket: delete: it is gone" says "not stored" query "$(site large.txt)"
    verify "socket: inject" says "done" inject "$(site new.txt)" a text by hand
    verify "socket: inject: a client gets it" fetch new.txt
    verify "socket: inject: as it is" page_says "a text by hand"
    verify "socket: report" says "images" report
    verify "socket: what is no command" says "help" nonsense
    verify "a reload" "$build/proxy/retortctl" -s "$dir/retort.sock" reload
    verify "a reload: the socket is there again" soon says "done" query "$(site new.txt)"
}

stage_begin content-manager "$@"
make_site
configure_all
start_nginx
start_retort
check_or_show
