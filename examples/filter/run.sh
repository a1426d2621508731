#!/bin/bash
# A filter for a school or a company, on one machine, for trying it: sites by nginx, c-icap with the ad remover, and Retort with
# users, groups, lists of domains and hours. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/filter/run.sh            installs what is missing, builds, starts it all, says what to
#                                       try, and stops it all again on Ctrl-C
#     examples/filter/run.sh --check    tries it as a teacher, a pupil and a stranger instead, prints a
#                                       table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/filter. Names that end with .localhost are this machine, so no name server is needed.
source "$(dirname "$0")/../stage.sh"

# ---- the sites, the users and the lists -------------------------------------------------------

configure_sites() {
    configure_nginx
    cat <<NGINX
    log_format fields '\$host \$http_youtube_restrict \$http_authorization \$http_proxy_authorization';
    server {
        listen 127.0.0.1:$origin_port;
        listen 127.0.0.1:$https_port ssl;
        ssl_certificate $dir/web-site.pem;
        ssl_certificate_key $dir/web-site.key;
        access_log $dir/nginx-access.log fields;
        root $dir/site;
        add_header Cache-Control "max-age=3600";
    }
}
NGINX
}

# user NAME PASSWORD
user() { printf '%s:%s\n' "$1" "$(openssl passwd -5 "$2")" >>"$dir/users"; }

make_lists() {
    user anna teaches
    user ben learns
    echo "teachers: anna" >"$dir/groups"
    echo "adult.localhost" >"$dir/adult.txt"
    echo "games.localhost" >"$dir/games.txt"
    cp -R "$source_dir/examples/pages" "$dir/pages"
    echo "||localhost^*/ads/" >>"$dir/rules.txt"
}

# ---- configuration ----------------------------------------------------------------------------

configure_all() {
    choose_ports origin:9000 https:9443 icap:1344 proxy:3128
    configure_sites >"$dir/nginx.conf"
    configure_hours "mon-sun 00:00-24:00"
}

# configure_hours LESSONS
configure_hours() {
    fill retort.conf.in PORT="$proxy_port" ICAP="$icap_port" HTTPS="$https_port" LESSONS="$1" >"$dir/retort.conf"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    local as="curl -x http://127.0.0.1:$proxy_port --noproxy '' --cacert $dir/ca.pem -U"
    cat <<TEXT

Retort runs. Anna is a teacher, Ben is a pupil, and it is time for lessons. In another window:

    $as ben:learns http://news.localhost:$origin_port/          a page without ads
    $as ben:learns http://games.localhost:$origin_port/         blocked: a page that says so
    $as anna:teaches http://games.localhost:$origin_port/       teachers may
    $as anna:teaches http://adult.localhost:$origin_port/       nobody may
    $as ben:learns https://games.localhost:$https_port/        https is filtered, too
    $as ben:wrong http://news.localhost:$origin_port/           407: who are you?

    tail -f $dir/access.log                                   with the user of each request
    $build/proxy/retortctl -s $dir/retort.sock access         how often each section has decided
    $build/proxy/retortctl -s $dir/retort.sock access test http://games.localhost/ --user ben

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

# fetch USER:PASSWORD URL [CURL OPTIONS]
fetch() { fetch_through "http://127.0.0.1:$proxy_port" "$2" --proxy-user "$1" --cacert "$dir/ca.pem" "${@:3}"; }
http() { echo "http://$1.localhost:$origin_port/$2"; }
https() { echo "https://$1.localhost:$https_port/$2"; }
last_fields() { tail -1 "$dir/nginx-access.log"; }
nobody_was_asked() { ! grep -q "^$1.localhost" "$dir/nginx-access.log"; }
logged_user() { tail -1 "$dir/access.log" | grep -q "\"user\": *\"$1\""; }

run_checks() {
    local ben=ben:learns anna=anna:teaches
    verify "pupil: a page" fetch $ben "$(http news index.html)"
    verify "pupil: a page: as it is" is_the_file index.html
    verify "pupil: a page: the log has the name" soon logged_user ben
    verify "pupil: the site has not seen the password" [ "$(last_fields)" = "news.localhost - - -" ]
    verify "pupil: an ad" fetch $ben "$(http news ads/banner.gif)"
    verify "pupil: an ad: a blank image" is_blank
    verify "pupil: a game during lessons" fetch $ben "$(http games index.html)"
    verify "pupil: a game during lessons: 403" status_is 403
    verify "pupil: a game during lessons: a page says so" page_says "not available here"
    verify "pupil: a game during lessons, by https" fetch $ben "$(https games index.html)"
    verify "pupil: a game during lessons, by https: 403" status_is 403
    verify "pupil: a game during lessons, by https: a page says so" page_says "https://games.localhost:$https_port/index.html"
    verify "pupil: in German" fetch $ben "$(http games index.html)" -H "Accept-Language: de"
    verify "pupil: in German: a page says so" page_says 'lang="de"'
    verify "games: no site was asked" nobody_was_asked games
    verify "teacher: a game during lessons" fetch $anna "$(http games index.html)"
    verify "teacher: a game during lessons: 200" status_is 200
    verify "teacher: what nobody may see" fetch $anna "$(http adult "")"
    verify "teacher: what nobody may see: 403" status_is 403
    verify "pupil: what the teacher has put into the cache" fetch $ben "$(http games index.html)"
    verify "pupil: what the teacher has put into the cache: 403" status_is 403
    verify "wrong password" fetch ben:guess "$(http news index.html)"
    verify "wrong password: 407" status_is 407
    verify "https page, opened" fetch $ben "$(https news index.html)"
    verify "https page, opened: as it is" is_the_file index.html
    verify "bank: with its own certificate" fetch_through "http://127.0.0.1:$proxy_port" "$(https bank index.html)" --proxy-user $ben --cacert "$dir/web.pem"
    verify "search: asked to show less" fetch $ben "$(http search index.html)"
    verify "search: asked to show less: the site has seen it" [ "$(last_fields)" = "search.localhost Strict - -" ]
    configure_hours "$(LC_ALL=C date -d yesterday +%a | tr '[:upper:]' '[:lower:]') 03:00-03:01"
    verify "reload: no lessons today" "$build/proxy/retortctl" -s "$dir/retort.sock" reload
    verify "pupil: a game after lessons" fetch $ben "$(http games index.html)"
    verify "pupil: a game after lessons: 200" status_is 200
    verify "retortctl access: the list has decided" ctl_says adult -s "$dir/retort.sock" access
}

stage_begin filter "$@"
make_site
make_lists
make_web news.localhost games.localhost adult.localhost bank.localhost search.localhost
make_authority "The proxy of the school"
configure_all
start_nginx
start_services
start_retort
check_or_show
