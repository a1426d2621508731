#!/bin/sh
# Installs the packages of Debian 12 or 13 that Retort is built from and tested with. What is there already is left
# alone. Services that a package brings are not started.
#
#     tests/install.sh build     the compiler side and the libraries
#     tests/install.sh run       what a running Retort uses: c-icap, netpbm, curl for lists
#     tests/install.sh try       build, run and what examples/quickstart.sh shows it with
#     tests/install.sh test      all of the above and the peers and tools of the tests (the default)
#     tests/install.sh squid     build, run, try and Squid
#     tests/install.sh fleet     build, run, try and Redis
#     tests/install.sh network   build, run, try and what makes network namespaces
#     tests/install.sh virus     build, run, try and ClamAV in c-icap
#     tests/install.sh bench     build, run and what tests/bench/run.sh compares with
#
# Names with a "?" are wanted but not needed: tests that use them say so when they are missing.
set -eu

build="build-essential autoconf automake libtool pkg-config
    libc-ares-dev libjansson-dev libpcre2-dev libpsl-dev libidn2-dev libmicrohttpd-dev liburing-dev libxxhash-dev libhiredis-dev
    libjpeg-dev libpng-dev libwebp-dev libgif-dev libseccomp-dev zlib1g-dev libbrotli-dev libzstd-dev
    libssl-dev libcrypt-dev libkrb5-dev libcurl4-openssl-dev libicapapi-dev check"
run="c-icap netpbm curl"
try="nginx-light ca-certificates python3 python3-pip libjpeg-turbo-progs giflib-tools procps"
virus="libc-icap-mod-virus-scan clamav-daemon"
squid="squid-openssl"
fleet="redis-server"
packages="debhelper debootstrap lintian mkdocs mkdocs-material"
network="iproute2 nftables util-linux"
test="$squid $fleet haproxy wrk apache2-utils gnutls-bin testssl.sh libnss3-tools spin? valgrind strace time $network $packages git clang clang-format-14?
    libclang-rt-dev node-llhttp libnghttp2-dev python3-html5lib python3-cryptography nghttp2-client nghttp2-server h2o? python3-h2 python3-hpack python3-grpcio? golang-go? goaccess calamaris? chromium? logrotate? systemd?
    libc-icap-mod-virus-scan? clamav-daemon? slapd? ldap-utils? krb5-kdc? krb5-admin-server? krb5-user? prometheus? python3-prometheus-client? python3-jsonschema? python3-yaml? zsh? fish?"
bench="nginx-light haproxy varnish trafficserver? squid-openssl h2o? nghttp2-proxy nghttp2-client wrk apache2-utils gnuplot-nox fonts-dejavu-core python3 procps
    util-linux"

packages_of() {
    case $1 in
    build) echo "$build" ;;
    run) echo "$run" ;;
    try) echo "$build $run $try" ;;
    test) echo "$build $run $try $test" ;;
    squid) echo "$build $run $try $squid" ;;
    fleet) echo "$build $run $try $fleet" ;;
    network) echo "$build $run $try $network" ;;
    virus) echo "$build $run $try $virus" ;;
    bench) echo "$build $run $bench" ;;
    *) echo "usage: $0 [build|run|try|test|squid|fleet|network|virus|bench]" >&2; exit 2 ;;
    esac
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

installed() {
    dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'
}

# npm comes from Debian, or from another source together with its own nodejs.
npm_package() {
    command -v npm >/dev/null 2>&1 || echo npm
}

missing() {
    for package in "$@"; do
        installed "${package%\?}" || echo "$package"
    done
}

# While this file is there and says 101, package scripts start no service.
policy=/usr/sbin/policy-rc.d
policy_ours=no
hold_services() {
    [ -e "$policy" ] && return
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    policy_ours=yes
}
release_services() {
    if [ "$policy_ours" = yes ]; then as_root rm -f "$policy"; fi
}

group=${1:-test}
names=$(packages_of "$group")
case $group in try | test) names="$names $(npm_package)" ;; esac
# shellcheck disable=SC2086
wanted=$(missing $names)
needed=$(for package in $wanted; do case $package in *\?) ;; *) echo "$package" ;; esac; done)
optional=$(for package in $wanted; do case $package in *\?) echo "${package%\?}" ;; esac; done)
if [ -z "$needed$optional" ]; then
    echo "packages: all there"
    exit 0
fi

trap release_services EXIT
hold_services
export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -q || true
if [ -n "$needed" ]; then
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $needed
fi
for package in $optional; do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" ||
        echo "packages: $package could not be installed; tests that use it will say so" >&2
done
