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

# The mirror that this machine installs from.
mirror() {
    apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 == "bookworm" && $2 == "main" { print $3; exit }' | grep . || echo http://deb.debian.org/debian
}

# A mirror may fail for a moment: twice.
bootstrap() {
    debootstrap --variant=minbase bookworm "$root" "$(mirror)" && return
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase bookworm "$root" "$(mirror)"
}

# The base system is kept for the next run, for a day.
make_chroot() {
    rm -rf --one-file-system "$root"
    if [ -n "$(find "$out/base.tar" -mtime -1 2>/dev/null)" ]; then
        mkdir "$root" && tar -C "$root" -xpf "$out/base.tar" || return
    else
        bootstrap || return
        tar -C "$root" --one-file-system -cf "$out/base.tar" . || return
    fi
    cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/speed"
    echo 'Acquire::Languages "none";' >"$root/etc/apt/apt.conf.d/speed"
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
    while read -r file; do
        case $file in *.conf) echo "# A comment of the later version." >>"$tree$file" ;; esac
    done <"$tree/DEBIAN/conffiles"
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
