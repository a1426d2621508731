#!/bin/bash
# The Debian packages from their build to their purge: built, looked at by lintian, installed in a fresh chroot that
# debootstrap makes, used, upgraded to a later version while the proxy serves, removed and purged. As root.
#
#     tests/package/run.sh BUILDDIR
#
# BUILDDIR is a configured build tree; packages and logs are in BUILDDIR/package. No systemd runs in a chroot:
# tests/package/systemctl stands in for it, and starts services as the users and groups of their units. They run in namespaces
# of their own, so that their ports disturb nobody and nothing of them is left (inside.sh). A line that begins with "not run"
# says what this machine does not allow.
#
# The last line counts; exit status 0 when nothing failed.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: run.sh BUILDDIR}/package"
builddir=$(cd "$1" && pwd)
out=$builddir/package
root=$out/root
source "$here/rows.sh"
source "$here/base.sh"

finish() {
    rm -rf --one-file-system "$root"
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ]
    exit
}

cannot() {
    echo "not run: the test of the packages needs $1"
    exit 0
}

make_chroot() {
    base_system "$own_suite" "$root" "$out/base.tar" || return
    echo "DPkg::Path \"$path\";" >"$root/etc/apt/apt.conf.d/path"
    install -m 755 "$here/systemctl" "$root/usr/local/bin/systemctl"
    mkdir -p "$root/packages/later" "$root/run/systemd/system"
    inside apt-get update -q
}

# Later the chroot has no network.
fetch_dependencies() {
    cp "$out"/*.deb "$root/packages/" && inside sh -c 'apt-get install -q -y --no-install-recommends --download-only /packages/*.deb'
}

# make_later NAME: the package as a later version has it, with other defaults.
make_later() {
    local tree=$out/later file
    rm -rf "$tree"
    dpkg-deb -R "$out"/"$1"_*.deb "$tree" || return
    sed -i 's/^Version: .*/&+later/' "$tree/DEBIAN/control"
    for file in "$tree"/usr/share/retort/defaults/*; do echo "# A comment of the later version." >>"$file"; done
    dpkg-deb -Znone --root-owner-group -b "$tree" "$root/packages/later" && rm -r "$tree"
}
make_both_later() { make_later retort && make_later retort-icap-services; }

look() { (cd "$out" && lintian --allow-root --fail-on error,warning ./*.changes); }
ended() { wait "$1" || { tail -n 15 "$2"; return 1; }; }

[ "$(id -u)" = 0 ] || cannot root
for tool in debootstrap dpkg-buildpackage lintian mkdocs; do
    command -v "$tool" >/dev/null || cannot "$tool (tests/install.sh test installs it)"
done
rm -f "$out/inside.log"
make_chroot >"$out/chroot.log" 2>&1 &
making=$!
verify "packages: built" "$here/build.sh" "$builddir"
look >"$out/lintian.log" 2>&1 &
looking=$!
verify "chroot: made by debootstrap" ended $making "$out/chroot.log"
[ $failed -eq 0 ] || finish
verify "chroot: what the packages depend on is fetched" fetch_dependencies
verify "later version: made" make_both_later
if unshare --net --pid --fork --kill-child true 2>/dev/null; then
    unshare --net --pid --fork --kill-child "$here/inside.sh" "$out" | tee "$out/inside.log"
    passed=$((passed + $(grep -c ' ok$' "$out/inside.log")))
    failed=$((failed + $(grep -c ' FAILED$' "$out/inside.log")))
    verify "packages: used to their end" grep -qE '^(end|not run)' "$out/inside.log"
else
    echo "not run: installing and using the packages needs to make namespaces (unshare --net --pid)"
fi
verify "lintian: no error, no warning" ended $looking "$out/lintian.log"
finish
