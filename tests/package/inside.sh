#!/bin/bash
# The part of run.sh that installs and uses the packages: run.sh starts it in namespaces for network and processes. The
# script itself, an origin and clients are outside of the chroot.
#
#     inside.sh DIRECTORY      with root/, the chroot, and root/packages; its log files are there as well
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$1
root=$out/root
source "$here/rows.sh"
proxy=http://127.0.0.1:3128
origin=http://127.0.0.1:8000

# ---- the stage --------------------------------------------------------------------------------

make_site() {
    rm -rf "$out/site"
    mkdir -p "$out/site/ads"
    cp "$top/tests/data/cache/photos/china.jpg" "$out/site/"
    cp "$top/tests/data/cache/gif/postcard.gif" "$out/site/ads/banner.gif"
    python3 -m http.server --directory "$out/site" --bind 127.0.0.1 8000 >"$out/origin.log" 2>&1 &
}

fetch() { curl -sS --max-time 20 --noproxy '' -x $proxy -o "$out/it.body" -w '%{http_code}\n' "$origin/$1"; }
status_of() { [ "$(fetch "$1")" = "$2" ]; }
photo_is_gray() {
    fetch "china.jpg?$RANDOM" && djpeg -pnm "$out/it.body" >"$out/seen.pnm" &&
        djpeg -pnm -grayscale "$out/site/china.jpg" >"$out/wanted.pnm" && cmp "$out/seen.pnm" "$out/wanted.pnm"
}
ad_is_blank() { fetch "ads/banner.gif?$RANDOM" && [ "$(giftopnm -quiet "$out/it.body" | pamfile -size)" = "1 1" ]; }
soon() {
    for _ in $(seq 50); do
        "$@" && return
        sleep 0.2
    done
    return 1
}

main_pid() { inside systemctl show --property=MainPID --value "$1"; }
id_of() { awk -F: -v name="$2" '$1 == name { print $3 }' "$root/etc/$1"; }
# runs_as UNIT USER: all users of its process, the saved one too.
runs_as() {
    local id
    id=$(id_of passwd "$2")
    [ -n "$id" ] && [ "$(awk '/^Uid:/ { print $2, $3, $4, $5 }' "$root/proc/$(main_pid "$1")/status")" = "$id $id $id $id" ]
}
has_group() { grep -E '^Groups:' "$root/proc/$(main_pid "$1")/status" | tr '\t' ' ' | grep -q " $(id_of group "$2") "; }
a_child_runs_as() {
    local child id
    id=$(id_of passwd "$2")
    for child in $(cat "$root/proc/$(main_pid "$1")/task/$(main_pid "$1")/children"); do
        grep -q "^Uid:	$id	$id	$id	$id" "$root/proc/$child/status" && return
    done
    return 1
}
runs_the_new_program() { [ "$(readlink "$root/proc/$(main_pid retort)/exe")" = "$root/usr/sbin/retort" ]; }
has_mode() { [ "$(stat -c '%a %u %g' "$root$1")" = "$2 0 $(id_of group retort)" ]; }

# ---- the life of the packages -----------------------------------------------------------------

# Without an option for changed configurations, and with nobody who could answer a question.
apt_get() { inside sh -c "apt-get -q -y --no-install-recommends $*" </dev/null; }

check_install() {
    verify "installation" apt_get install '/packages/*.deb'
    for name in retort retort-helperd c-icap; do
        verify "installation: $name runs" inside systemctl is-active "$name"
    done
    verify "the proxy runs as retort" runs_as retort retort
    verify "retort-helperd runs as retort" runs_as retort-helperd retort
    verify "retort-helperd is in the group c-icap" has_group retort-helperd c-icap
    verify "c-icap serves as c-icap" a_child_runs_as c-icap c-icap
    verify "retort.conf can be read by the group retort, and by nobody else" has_mode /etc/retort/retort.conf 640
    verify "the user retort can check the configuration" inside setpriv --reuid=retort --regid=retort --init-groups retort -t
    verify "defaults: the proxy answers, and does not let clients to this machine" soon status_of china.jpg 403
    verify "defaults: retortctl reaches the proxy" inside retortctl status
    verify "defaults: retortctl reaches the helpers" inside retortctl helpers
    verify "the guides for a browser are there" test -s "$root/usr/share/doc/retort/html/index.html"
}

changed="retort.conf helperd.conf c-icap-retort.conf conf.d/own.conf"

# As docs/OPERATIONS.md says; the origin is on this machine, and the cache on disk a small one.
configure() {
    local switch_on
    switch_on=$(grep -m1 "^    sed -n '/^#icap_service" "$top/docs/OPERATIONS.md") || return
    inside sh -c "$switch_on"
    sed -i -e 's/^listen .*mode = forward/& local_destinations = allow/' \
        -e 's|#disk "/var/cache/retort".*|disk "/var/cache/retort" { size = "64MB" }|' "$root/etc/retort/retort.conf"
    echo 'url_class own { host = "own.example" }' >"$root/etc/retort/conf.d/own.conf"
    for name in $changed; do echo "# A change of the administrator's." >>"$root/etc/retort/$name"; done
    echo '||127.0.0.1^*/ads/' >"$root/var/lib/retort-lists/own.txt"
    inside sh /usr/share/retort/reload-c-icap.sh && inside systemctl restart retort
}

check_use() {
    verify "services switched on as docs/OPERATIONS.md says" configure
    verify "a photo is gray" soon photo_is_gray
    verify "an ad is a blank image" soon ad_is_blank
    verify "retortctl reload" inside retortctl reload
    verify "a file of conf.d is in use" uses_own
}
uses_own() { inside retortctl config show --json | grep '"/etc/retort/conf.d/own.conf"'; }

check_upgrade() {
    local before visitors
    before=$(main_pid retort)
    rm -rf "$out/kept"
    cp -r "$root/etc/retort" "$out/kept"
    python3 "$top/examples/two-hosts/visits.py" 3128 "$origin/china.jpg" 4 - "$out/visits.json" &
    visitors=$!
    verify "upgrade to a later version" apt_get install '/packages/later/*.deb'
    kill -TERM $visitors
    wait $visitors
    verify "upgrade: another process serves" test "$before" != "$(main_pid retort)"
    verify "upgrade: it is the later program" runs_the_new_program
    verify "upgrade: the process before it has ended, or ends" soon not kill -0 "$before"
    verify "upgrade: $(said visits) requests of four clients meanwhile, each answered with 200" [ "$(said statuses)" = "[200]" ]
    for name in $changed; do
        verify "upgrade: $name, which was changed, is kept" cmp "$out/kept/$name" "$root/etc/retort/$name"
    done
    verify "upgrade: a file of conf.d is in use" uses_own
    verify "upgrade: the later default is beside a configuration" grep -q "of the later version" "$root/etc/retort/retort.conf.default"
    verify "upgrade: a configuration that was not changed is the later one" grep -q "of the later version" "$root/etc/retort/lists.conf"
    verify "upgrade: retort.conf has kept its mode" has_mode /etc/retort/retort.conf 640
    for name in retort retort-helperd c-icap; do
        verify "upgrade: $name runs" inside systemctl is-active "$name"
    done
    verify "upgrade: a photo is gray" soon photo_is_gray
    verify "upgrade: an ad is a blank image" soon ad_is_blank
}
said() { python3 -c "import json; print(json.load(open('$out/visits.json'))['$1'])"; }

check_refused_upgrade() {
    local before
    before=$(main_pid retort)
    echo "nonsense = 1" >>"$root/etc/retort/retort.conf"
    verify "reinstallation over a configuration with a mistake" apt_get install --reinstall '/packages/later/retort_*.deb'
    cp "$out/it.out" "$out/mistake.out"
    verify "mistake: the message says what to do" grep -q 'goes on serving' "$out/mistake.out"
    verify "mistake: the process from before serves" test "$before" = "$(main_pid retort)"
    verify "mistake: a photo is gray" soon photo_is_gray
    cp "$out/kept/retort.conf" "$root/etc/retort/retort.conf"
}

# Without the helpers' directory in /tmp: under systemd they have a /tmp of their own, which ends with them.
left() {
    find "$root" -xdev \( -path "$root/packages" -o -path "$root/proc" -o -path "$root/dev" -o -path "$root/var/cache/apt" -o -path "$root/var/log/apt" \) -prune -o \
        \( -iname '*retort*' -o -nouser -o -nogroup \) ! -path "$root/run/*.main" ! -path "$root/run/*.ready" ! -path "$root/run/*.notify" \
        ! -path "$root/var/log/*.out" ! -path "$root/tmp/retort-helpers-*" -print
}
nothing_is_left() {
    left >"$out/left.txt"
    cat "$out/left.txt"
    [ ! -s "$out/left.txt" ]
}
# As docs/OPERATIONS.md says: its number must not become another user's. Nobody can log in as it.
user_stays() { grep '^retort:.*:/usr/sbin/nologin$' "$root/etc/passwd" && grep '^retort:!' "$root/etc/shadow" && grep '^retort:' "$root/etc/group"; }

check_end() {
    verify "removal" apt_get remove retort retort-icap-services
    for name in retort retort-helperd c-icap; do
        verify "removal: $name has ended" not inside systemctl is-active "$name"
    done
    verify "removal: the configuration stays" cmp "$out/kept/retort.conf" "$root/etc/retort/retort.conf"
    verify "removal: the lists stay" test -e "$root/var/lib/retort-lists/own.txt"
    verify "purge" apt_get purge retort retort-icap-services retort-dev retort-doc
    verify "purge: no file is left, and none without an owner" nothing_is_left
    verify "purge: the user stays, without password and shell" user_stays
}

# c-icap has shared memory.
mkdir -p "$root/dev/shm"
trap 'umount "$root/dev/shm" "$root/proc" 2>/dev/null' EXIT
if ! mount -t proc proc "$root/proc" || ! mount -t tmpfs shm "$root/dev/shm"; then
    echo "not run: installing and using the packages needs to mount /proc and /dev/shm in the chroot"
    exit 0
fi
ip link set lo up
make_site
check_install
[ $failed -eq 0 ] || exit
check_use
check_upgrade
check_refused_upgrade
check_end
echo "not checked here, as no systemd runs in a chroot: the sandbox of the units, their watchdog, and the timer of lists"
echo end
