#!/bin/bash
# Interception on one machine, for trying it: https sites by nginx, c-icap with the adaptation services, and Retort,
# which opens the TLS connections of its clients. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/intercept/run.sh            installs what is missing, builds, starts it all, says what to
#                                          try, and stops it all again on Ctrl-C
#     examples/intercept/run.sh --check    fetches pages through the proxy instead, verifies who signed
#                                          them and what became of them, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/intercept. Names that end with .localhost are this machine, so no name server is needed.
source "$(dirname "$0")/../stage.sh"

# ---- the web: https sites ---------------------------------------------------------------------

make_sites() {
    make_web news.localhost bank.localhost casino.localhost
    new_key -x509 -subj "/CN=broken.localhost" -addext subjectAltName=DNS:broken.localhost -keyout "$dir/broken.key" -out "$dir/broken.pem"
}

configure_sites() {
    configure_nginx
    cat <<NGINX
    add_header Cache-Control "max-age=3600";
    add_header Alt-Svc 'h3=":443"';
    server {
        listen 127.0.0.1:$origin_port ssl default_server;
        server_name news.localhost bank.localhost casino.localhost;
        ssl_certificate $dir/web-site.pem;
        ssl_certificate_key $dir/web-site.key;
        root $dir/site;
    }
    server {
        listen 127.0.0.1:$origin_port ssl;
        server_name broken.localhost;
        ssl_certificate $dir/broken.pem;
        ssl_certificate_key $dir/broken.key;
        root $dir/site;
    }
}
NGINX
}

# ---- configuration ----------------------------------------------------------------------------

configure_all() {
    choose_ports origin:9443 icap:1344 proxy:3128
    configure_sites >"$dir/nginx.conf"
    fill retort.conf.in PORT="$proxy_port" ICAP="$icap_port" ORIGIN="$origin_port" >"$dir/retort.conf"
    make_authority "The proxy of the example"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    local through="curl --proxy http://127.0.0.1:$proxy_port --noproxy '' --cacert"
    cat <<TEXT

Retort runs, and opens TLS connections. In another window:

    $through $dir/ca.pem https://news.localhost:$origin_port/
        a page without ads and with a text inserted, under a certificate of the proxy
    $through $dir/ca.pem -o photo.jpg https://news.localhost:$origin_port/china.jpg
        a gray photo
    $through $dir/web.pem https://bank.localhost:$origin_port/
        spliced: the bank's own certificate and its own bytes
    $through $dir/ca.pem https://casino.localhost:$origin_port/
        blocked: a page that says so
    $through $dir/ca.pem https://broken.localhost:$origin_port/
        a site whose certificate nobody trusts: a page that says why

In a browser: import $dir/ca.pem as an authority for web sites, set 127.0.0.1 port $proxy_port as the proxy
for https (and, for addresses of this machine, clear "no proxy for"; in Firefox set
network.proxy.allow_hijacking_localhost to true), and open https://news.localhost:$origin_port/ .
Remove the authority afterwards.

    tail -f $dir/access.log
    $build/proxy/retortctl -s $dir/retort.sock status

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

# fetch HOST PATH AUTHORITY [CURL OPTIONS]
fetch() {
    local url="https://$1:$origin_port/$2" authority=$3
    shift 3
    fetch_through "http://127.0.0.1:$proxy_port" "$url" --cacert "$dir/$authority" "$@"
}

# Requests and connections that the origin has seen.
asked() { wc -l <"$dir/nginx-access.log"; }
only_its_owner_reads() { [ "$(stat -c %a "$dir/ca.key")" = 600 ]; }

# The newest line of the log about a host says this result.
logged() {
    for _ in $(seq 50); do
        if grep "https://$1:$origin_port/$2\"" "$dir/access.log" | tail -1 | grep -q "\"result\": *\"$3\""; then return; fi
        sleep 0.1
    done
    return 1
}

# A second fetch is the same, from the cache; nobody asks the origin, which may even be gone.
is_hit() {
    cp "$dir/it.body" "$dir/first.body"
    local before
    before=$(asked)
    fetch news.localhost "$1" ca.pem && [ "$(asked)" = "$before" ] && cmp -s "$dir/it.body" "$dir/first.body" && logged news.localhost "$1" HIT
}

check_bumped() {
    verify "the key of the proxy's authority: for its owner only" only_its_owner_reads
    verify "page: fetched under the proxy's certificate" fetch news.localhost index.html ca.pem
    verify "page: a text inserted" text_in_place
    verify "page: no Alt-Svc, which would lead past the proxy" not head_says Alt-Svc .
    verify "page: second time a hit" is_hit index.html
    verify "photo: fetched" fetch news.localhost china.jpg ca.pem
    verify "photo: gray, its luminance untouched" jpeg_is_gray china.jpg
    verify "photo: second time a hit" is_hit china.jpg
    verify "ad: fetched" fetch news.localhost ads/banner.gif ca.pem
    verify "ad: replaced by a blank image" is_blank
    verify "page: not fetched by a client that does not know the proxy" not fetch news.localhost index.html web.pem
}

check_others() {
    verify "bank: fetched under its own certificate" fetch bank.localhost index.html web.pem
    verify "bank: as it is" is_the_file index.html
    verify "casino: a page, under the proxy's certificate" fetch casino.localhost "" ca.pem
    verify "casino: 403" status_is 403
    verify "broken site: a page, under the proxy's certificate" fetch broken.localhost "" ca.pem
    verify "broken site: 502" status_is 502
    verify "broken site: the page says why" page_says "self.signed"
}

check_without_origin() {
    stop_one "${pids[0]}"
    verify "with the origin stopped: the photo, by a new client" fetch news.localhost china.jpg ca.pem
    verify "with the origin stopped: still gray" jpeg_is_gray china.jpg
    verify "retortctl status" ctl_says intercept_bumped -s "$dir/retort.sock" status
}

run_checks() {
    check_bumped
    check_others
    check_without_origin
}

stage_begin intercept "$@"
make_site
echo "||localhost^*/ads/" >>"$dir/rules.txt"
make_sites
configure_all
start_nginx
start_services
start_retort
check_or_show
