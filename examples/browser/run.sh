#!/bin/bash
# A proxy for browsers that find it by themselves, on one machine, for trying it: nginx as the web, c-icap with the services,
# and Retort, which serves the file that tells browsers how to reach it. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/browser/run.sh            installs what is missing, builds, starts it all, says what to
#                                        try, and stops it all again on Ctrl-C
#     examples/browser/run.sh --check    reads the file as browsers do instead, with Chromium too if it is
#                                        there, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/browser.
source "$(dirname "$0")/../stage.sh"

configure_all() {
    choose_ports origin:9000 icap:1344 proxy:3128
    configure_site >"$dir/nginx.conf"
    fill retort.conf.in PORT="$proxy_port" ICAP="$icap_port" >"$dir/retort.conf"
    echo "127.0.0.1 news.example" >"$dir/hosts"
    echo "||news.example^*/ads/" >>"$dir/rules.txt"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    cat <<TEXT

Retort runs, and tells browsers how to reach it. In another window:

    curl http://127.0.0.1:$proxy_port/proxy.pac
    chromium --user-data-dir=$dir/profile --proxy-pac-url=http://127.0.0.1:$proxy_port/proxy.pac http://news.example:$origin_port/

Firefox: Settings, Network Settings, "Automatic proxy configuration URL": http://127.0.0.1:$proxy_port/proxy.pac

    tail -f $dir/access.log

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

get_pac() { curl -sS --max-time 10 --noproxy '*' -D "$dir/it.head" -o "$dir/it.body" "http://127.0.0.1:$proxy_port$1"; }

# goes URL WAY: what the file says about a URL, asked as a browser does.
goes() {
    cat - "$dir/it.body" >"$dir/pac.js" <<'PAC'
function isPlainHostName(host) { return !host.includes("."); }
function dnsDomainIs(host, domain) { return host.endsWith(domain); }
function localHostOrDomainIs(host, name) { return host === name || name.startsWith(host + "."); }
function shExpMatch(text, pattern) {
    return new RegExp("^" + pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$").test(text);
}
PAC
    echo "console.log(FindProxyForURL(process.argv[2], new URL(process.argv[2]).hostname))" >>"$dir/pac.js"
    [ "$(node "$dir/pac.js" "$1")" = "$2" ]
}

# A browser that knows nothing but where the file is.
browse() {
    timeout 60 "$1" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir="$dir/profile" \
        --proxy-pac-url="http://127.0.0.1:$proxy_port/proxy.pac" --dump-dom "http://news.example:$origin_port/" \
        >"$dir/it.body" 2>"$dir/chromium.out"
}

run_checks() {
    local through="PROXY 127.0.0.1:$proxy_port; DIRECT" name
    verify "proxy.pac: fetched without a proxy" get_pac /proxy.pac
    verify "proxy.pac: its type" head_says Content-Type application/x-ns-proxy-autoconfig
    verify "wpad.dat: the same" get_pac /wpad.dat
    if command -v node >/dev/null; then
        verify "a page of the web: through the proxy" goes http://news.example/ "$through"
        verify "https: through the proxy" goes https://bank.example/ "$through"
        verify "the own network: direct" goes http://wiki.intranet.example/ DIRECT
        verify "a name without a dot: direct" goes http://printer/ DIRECT
        verify "a name that only ends like it: through the proxy" goes http://notintranet.example/ "$through"
    fi
    verify "a page through the proxy" fetch_through "http://127.0.0.1:$proxy_port" "http://news.example:$origin_port/index.html"
    verify "a page through the proxy: a text inserted" text_in_place
    name=$(command -v chromium || command -v chromium-browser || true)
    if [ -z "$name" ]; then
        row "Chromium" "not installed"
        return
    fi
    verify "Chromium: a page" browse "$name"
    verify "Chromium: a page: a text inserted" page_says 'name="inserted-by-retort"'
    verify "Chromium: it came through the proxy" grep -q HeadlessChrome "$dir/access.log"
}

stage_begin browser "$@"
make_site
configure_all
start_nginx
start_services
start_retort
check_or_show
