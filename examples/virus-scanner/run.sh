#!/bin/bash
# A proxy that lets no virus pass, on one machine, for trying it: nginx as the origin, c-icap with Debian's virus_scan
# service (ClamAV), and Retort. On a fresh Debian 12 or 13, as root or with sudo:
#
#     examples/virus-scanner/run.sh            installs what is missing, builds, starts it all, says what to
#                                              try, and stops it all again on Ctrl-C
#     examples/virus-scanner/run.sh --check    fetches and sends files instead, prints a table; 0 when all is well
#
#     --builddir DIR     where it is built, or was (default: build)
#     --no-install       do not look for missing packages
#
# What it writes is under DIR/virus-scanner. The one virus here is EICAR's test file, which is harmless. It is also the only
# one that this ClamAV knows: the script gives it a list of signatures of its own.
source "$(dirname "$0")/../stage.sh"
packages=virus

# ---- the origin -------------------------------------------------------------------------------

# The test file is put together here, so that no scanner stops at this script.
eicar() { printf '%s%s%s' 'X5O!P%@AP[4\PZX54(P^)7CC)7}$' 'EICAR-STANDARD-ANTIVIRUS' '-TEST-FILE!$H+H*'; }

# An archive with the test file, and with the password 1234.
locked_archive() {
    base64 -d <<'BASE64'
UEsDBAoACQAAALZAfV08z1FoUAAAAEQAAAALAAAAaW52b2ljZS5jb22FRnaYcsoGBvMuDP7oBiUFQyYvPsHmWTWgVI0SoJHApfioih6Hwb2e4aAlFs+g
eOw5go15I5lIu+Lx9YUDRvi5p8vEpO8KmL5/voNrml/A+lBLBwg8z1FoUAAAAEQAAABQSwECHgMKAAkAAAC2QH1dPM9RaFAAAABEAAAACwAAAAAAAAAA
AAAApIEAAAAAaW52b2ljZS5jb21QSwUGAAAAAAEAAQA5AAAAiQAAAAAA
BASE64
}

make_files() {
    mkdir -p "$dir"/site/{slow,drip,unsaid}
    eicar >"$dir/site/eicar.com"
    locked_archive >"$dir/site/locked.zip"
    cp "$data/photos/china.jpg" "$data/html/management.html" "$dir/site/"
    head -c 60000 /dev/urandom >"$dir/site/slow/clean.bin"
    head -c 60000 /dev/urandom >"$dir/site/drip/clean.bin"
    truncate -s $((limit * 1048576 + 1)) "$dir/site/large.bin" "$dir/site/unsaid/large.bin"
    { printf '%%PDF-1.7\n'; head -c 2000 "$dir/site/management.html"; echo "a test of types"; } >"$dir/site/infected.pdf"
    python3 - "$dir/site" "$limit" <<'PYTHON'
import os, sys, zipfile
site, limit = sys.argv[1], int(sys.argv[2])
with zipfile.ZipFile(f"{site}/holiday.zip", "w") as archive:
    archive.write(f"{site}/eicar.com", "photos/invoice.pdf")
with zipfile.ZipFile(f"{site}/slow/infected.zip", "w") as archive:
    archive.writestr("noise", os.urandom(60000))
    archive.write(f"{site}/eicar.com", "eicar.com")
with zipfile.ZipFile(f"{site}/unpacks.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("zeros", bytes(limit * 1048576 + 1))
PYTHON
}

# ClamAV's form of a signature: MD5, size, name.
make_signatures() {
    mkdir -p "$dir/signatures"
    {
        eicar | md5sum | sed 's/ .*/:68:Eicar-Test-File/'
        md5sum <"$dir/site/infected.pdf" | sed "s/ .*/:$(stat -c %s "$dir/site/infected.pdf"):Pdf-Test-File/"
    } >"$dir/signatures/test.hdb"
}

# ---- configuration ----------------------------------------------------------------------------

configure_all() {
    choose_ports origin:9000 icap:1344 proxy:3128
    configure_site 'add_header Cache-Control "max-age=3600";' "location /slow/ { limit_rate 20k; }" "location /upload { return 204; }" \
        "client_max_body_size 0;" "location /drip/ { limit_rate 5k; }" "location /unsaid/ { ssi on; ssi_types *; }" >"$dir/nginx.conf"
    fill clamd.conf.in LIMIT="$limit" >"$dir/clamd.conf"
    fill c-icap.conf.in PORT="$icap_port" LIMIT="$limit" >"$dir/c-icap.conf"
    fill retort.conf.in PORT="$proxy_port" ICAP="$icap_port" LIMIT="$limit" >"$dir/retort.conf"
    # The check does not wait as long as a person would.
    if [ $check = yes ]; then
        sed -i -e 's/\(patience_after\) = "5s"/\1 = "400ms"/' -e 's/\(trickle_after\) = "10s"/\1 = "500ms"/' \
            -e 's/\(trickle_every\) = "2s"/\1 = "300ms"/' "$dir/retort.conf"
    fi
}

# c-icap needs a clamd that answers: it looks for it only when it starts.
start_scanner() {
    start clamd clamd -c "$dir/clamd.conf"
    clamd_pid=${pids[-1]}
    wait_socket clamd "$dir/clamd.sock"
    start c-icap c-icap -N -f "$dir/c-icap.conf"
    cicap_pid=${pids[-1]}
    wait_port c-icap "$icap_port"
}

# ---- what to try ------------------------------------------------------------------------------

show() {
    local through="curl -x http://127.0.0.1:$proxy_port --noproxy ''"
    cat <<TEXT

Retort runs, and a scanner looks at all that passes. In another window:

    $through -o china.jpg http://127.0.0.1:$origin_port/china.jpg       a photo, as it is; the second time from the cache
    $through http://127.0.0.1:$origin_port/eicar.com                    a page that says which virus was found
    $through http://127.0.0.1:$origin_port/holiday.zip                  the same: it is inside the archive
    $through http://127.0.0.1:$origin_port/locked.zip                   an archive with a password can't be scanned: 403
    $through http://127.0.0.1:$origin_port/large.bin                    a file above the limit can't either: 403
    $through -T $dir/site/eicar.com http://127.0.0.1:$origin_port/upload
                                                                             an upload is scanned, too
    $through -N -o - http://127.0.0.1:$origin_port/slow/infected.zip | wc -c
                                                                             it trickles, and is cut at the end

In a browser with 127.0.0.1 port $proxy_port as HTTP proxy, http://127.0.0.1:$origin_port/slow/clean.bin shows the waiting page.

    tail -f $dir/access.log
    $build/proxy/retortctl -s $dir/retort.sock services

Ctrl-C stops everything.
TEXT
    wait_for_the_end
}

# ---- the check --------------------------------------------------------------------------------

# fetch PATH [CURL OPTIONS]
fetch() {
    local url="http://127.0.0.1:$origin_port/$1"
    shift
    fetch_through "http://127.0.0.1:$proxy_port" "$url" "$@"
}
names_the_virus() { grep -q 'Eicar-Test-File' "$dir/it.body"; }
# refuses WHAT STATUS FETCH...: two rows.
refuses() {
    verify "$1: an answer" fetch "${@:3}"
    verify "$1: $2" status_is "$2"
}
scans() { grep -c . "$dir/c-icap-access.log" || true; }
is_hit_without_scan() {
    local before
    sleep 0.3
    before=$(scans)
    fetch "$1" && is_the_file "$1" && sleep 0.3 && [ "$(scans)" = "$before" ]
}
is_cut() { ! fetch "$1" && [ -s "$dir/it.body" ] && [ "$(stat -c %s "$dir/it.body")" -lt "$(stat -c %s "$dir/site/$1")" ]; }
# As a browser does: it follows the waiting page to the file.
becomes_the_file() {
    local host="http://127.0.0.1:$origin_port" next
    next=$(grep -aio 'refresh: .*' "$dir/it.head" | sed -E 's/.*url=([^ ]*).*/\1/I' | tr -d '\r"')
    next=${next#"$host"}
    for _ in $(seq 40); do
        fetch_through "http://127.0.0.1:$proxy_port" "$host$next" -H "Accept: text/html" || return
        if is_the_file "$1"; then return; fi
        sleep 0.3
    done
    return 1
}

# More downloads than c-icap usually has threads, each of which takes long.
start_drips() {
    curl -s --noproxy '' -x "http://127.0.0.1:$proxy_port" -Z --parallel-immediate --parallel-max 50 -o /dev/null \
        "http://127.0.0.1:$origin_port/drip/clean.bin?[1-50]" >"$dir/drips.out" 2>&1 </dev/null &
    drips_pid=$!
    soon drips_are_scanned
}
drips_are_scanned() { [ "$("$build/proxy/retortctl" -s "$dir/retort.sock" metrics | sed -n 's/^retort_service_connections{.*"scanner".*} //p')" -ge 50 ]; }
fetch_soon() { fetch "$1" --max-time 4 && kill -0 "$drips_pid"; }

run_checks() {
    verify "photo: fetched" fetch china.jpg
    verify "photo: as it is" is_the_file china.jpg
    verify "photo: second time a hit, without a scan" is_hit_without_scan china.jpg
    verify "page: fetched" fetch management.html
    verify "page: as it is" is_the_file management.html
    verify "virus: an answer" fetch eicar.com
    verify "virus: 403" status_is 403
    verify "virus: the page names it" names_the_virus
    verify "virus in an archive: an answer" fetch holiday.zip
    verify "virus in an archive: 403" status_is 403
    refuses "virus in a type that is rarely scanned" 403 infected.pdf
    refuses "archive with a password" 403 locked.zip
    refuses "file above the limit" 403 large.bin
    refuses "file above the limit, of unsaid length" 403 unsaid/large.bin
    refuses "archive that unpacks to more than the limit" 403 unpacks.zip
    verify "virus again, with a cache in between: an answer" fetch eicar.com
    verify "virus again, with a cache in between: 403" status_is 403
    verify "upload of a clean file: passes" fetch upload -T "$dir/site/china.jpg"
    verify "upload of a clean file: 204 of the origin" status_is 204
    verify "upload of a virus: an answer" fetch upload -T "$dir/site/eicar.com"
    verify "upload of a virus: 403" status_is 403
    refuses "upload of an archive with a password" 403 upload -T "$dir/site/locked.zip"
    refuses "upload above the limit" 413 upload -T "$dir/site/large.bin"
    verify "slow clean file: trickles, complete" fetch slow/clean.bin
    verify "slow clean file: as it is" is_the_file slow/clean.bin
    verify "slow infected archive: trickles, and is cut" is_cut slow/infected.zip
    verify "a person with a browser: a waiting page" fetch slow/clean.bin -H "Accept: text/html" -H "Cache-Control: no-cache"
    verify "a person with a browser: it becomes the file" becomes_the_file slow/clean.bin
    verify "50 slow downloads: under way" start_drips
    verify "50 slow downloads: another one does not wait" fetch_soon management.html?again
    verify "50 slow downloads: an upload does not wait" fetch_soon upload -T "$dir/site/china.jpg"
    kill "$drips_pid"
    wait "$drips_pid" || true
    kill -KILL -- "-$clamd_pid"
    refuses "clamd killed" '50[0-9]' management.html?clamd
    kill -KILL -- "-$cicap_pid"
    refuses "c-icap killed" '50[0-9]' other.txt
    verify "c-icap killed: what it has passed is still in the cache" fetch china.jpg
}

stage_begin virus-scanner "$@"
# In MB. Little makes the check quick.
if [ $check = yes ]; then limit=2; else limit=400; fi
make_files
make_signatures
configure_all
start_nginx
start_scanner
start_retort
check_or_show
