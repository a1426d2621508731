#!/bin/bash
# An accelerator in front of a slow site, on one machine, for trying it: a site that takes 200 ms for a page, and Retort in
# reverse mode. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/accelerator/run.sh            installs what is missing, builds, starts it all, says what to
#                                            try, and stops it all again on Ctrl-C
#     examples/accelerator/run.sh --check    measures pages with and without it instead, prints a table;
#                                            0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/accelerator.
source "$(dirname "$0")/../stage.sh"

configure_all() {
    choose_ports site:9000 proxy:8080
    fill retort.conf.in PORT="$proxy_port" SITE="$site_port" >"$dir/retort.conf"
}

start_site() {
    start site python3 "$here/site.py" "$site_port"
    wait_port site "$site_port"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    local there="http://127.0.0.1:$proxy_port"
    cat <<TEXT

Retort runs in front of a slow site. In another window:

    time curl $there/static     200 ms for the first visitor, no time for all others
    time curl $there/semi       is validated each time: 20 ms instead of 200
    time curl $there/dynamic    is made each time
    time curl $there/news       is made once a second at most; visitors do not wait for it
    curl http://127.0.0.1:$site_port/count           what the site itself was asked for

    curl -X PURGE $there/static      removes one page
    $build/proxy/retortctl -s $dir/retort.sock status

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

# measure PORT PATH NUMBER: microseconds for a page, of so many one after another over one connection.
measure() {
    python3 - "$@" <<'PYTHON'
import http.client, sys, time
port, path, number = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
begin = time.monotonic()
for _ in range(number):
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200 and b"took a while" in answer.read(), answer.status
print(int((time.monotonic() - begin) * 1e6 / number))
PYTHON
}

# faster WHAT PATH TIMES: as many times as fast as without the proxy, or more. The first visitor is not counted.
faster() {
    local alone through
    measure "$proxy_port" "$2" 1 >"$dir/first.out" || true
    alone=$(measure "$site_port" "$2" 3)
    through=$(measure "$proxy_port" "$2" 20)
    verify "$1: $alone us alone, $through us through Retort" [ "$alone" -ge $((through * $3 / 10)) ]
}

get() { curl -sS --max-time 30 -D "$dir/it.head" -o "$dir/it.body" "${@:2}" "http://127.0.0.1:$proxy_port$1" 2>"$dir/curl.out"; }
count() { curl -sS "http://127.0.0.1:$site_port/count" | python3 -c "import json, sys; print(json.load(sys.stdin).get('$1', 0))"; }
was_asked_for() { [ "$(count "$1")" = "$2" ]; }

# Fifty visitors at once, none of whom has been here before.
crowd() {
    local visitors=()
    for _ in $(seq 50); do
        curl -sS --max-time 30 -o /dev/null "http://127.0.0.1:$proxy_port$1" 2>>"$dir/curl.out" &
        visitors+=($!)
    done
    wait "${visitors[@]}"
}

# quick PATH: in less than half of the time that the site takes for a page.
quick() { [ "$(measure "$proxy_port" "$1" 1)" -lt 100000 ]; }

run_checks() {
    faster "static page (stored)" /static 200
    faster "page that is validated" /semi 30
    faster "dynamic page (not stored)" /dynamic 7
    local before
    before=$(count static)
    crowd "/static?crowd"
    verify "fifty visitors at once: the site makes the page once" was_asked_for static $((before + 1))
    measure "$proxy_port" /news 1 >"$dir/first.out"
    sleep 1.1
    verify "news, too old: shown at once, made anew behind it" quick /news
    verify "purge by the editors' machine" get /static -X PURGE
    verify "purge: 200" status_is 200
    before=$(count static)
    verify "purge: the next visitor gets a new page" get /static
    verify "purge: the site has made it" was_asked_for static $((before + 1))
    stop_one "${pids[0]}"
    verify "site down: static page" get /static
    verify "site down: static page as stored" status_is 200
    sleep 1.1
    verify "site down: news" get /news
    verify "site down: the old news" status_is 200
    verify "site down: dynamic page" get /dynamic
    verify "site down: a page that says so" status_is 502
}

stage_begin accelerator "$@"
configure_all
start_site
start_retort
check_or_show
