#!/bin/bash
# Another release of Debian on this machine: a chroot that debootstrap makes, with the sources as they are here. As root.
#
#     tests/other-debian.sh make SUITE DIRECTORY        the chroot becomes DIRECTORY/root, and the sources /root/retort there
#     tests/other-debian.sh run DIRECTORY COMMAND...    runs the command there, in the folder of the sources
#     tests/other-debian.sh remove DIRECTORY
#
# Commands run in namespaces of their own, so that nothing of theirs stays mounted or running. A line that begins with "not
# run" says what this machine does not allow; the status is 77 then.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/.." && pwd)
source "$here/package/base.sh"

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
}

cannot() {
    echo "not run: another release of Debian needs $1"
    exit 77
}

# As this machine reaches its network, package mirror, PyPI, npm and Go modules. Services that packages bring are not started.
take_over_settings() {
    local file
    cp /etc/apt/apt.conf.d/99* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    mkdir -p "$root/etc/ssl"
    cp -r /etc/ssl/certs "$root/etc/ssl/"
    for file in /etc/hosts /etc/resolv.conf /etc/pip.conf /etc/npmrc ~/.npmrc ~/.config/pip/pip.conf; do
        [ -e "$file" ] || continue
        mkdir -p "$root/$(dirname "${file/#$HOME//root}")"
        cp -p "$file" "$root/${file/#$HOME//root}"
    done
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
}

# What git knows, as it is in the files; the archive of a release has no git, and is taken whole.
copy_sources() {
    mkdir -p "$root/root/retort"
    { git -C "$top" ls-files -z 2>/dev/null || (cd "$top" && find . -mindepth 1 -maxdepth 1 ! -name build -print0); } |
        tar -C "$top" --null -T - -cf - | tar -C "$root/root/retort" -xf -
}

make_root() {
    [ "$(id -u)" = 0 ] || cannot root
    command -v debootstrap >/dev/null || cannot "debootstrap (tests/install.sh test installs it)"
    unshare --mount --pid --ipc --fork --kill-child true 2>/dev/null || cannot "to make namespaces (unshare --mount --pid --ipc)"
    mkdir -p "$out"
    # ca-certificates comes first, as its installation makes the list of authorities anew.
    base_system "$1" "$root" "$out/base.tar" ca-certificates,git
    take_over_settings
    copy_sources
}

# In the namespaces. In a chroot nobody could make namespaces of users, in a root of its own everybody can.
enter() {
    mount --bind "$root" "$root"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t sysfs sys "$root/sys"
    mount -t proc proc "$root/proc"
    cd "$root"
    pivot_root . .
    umount -l .
    cd /root/retort
    unset TMPDIR PYTHONHOME PYTHONPATH
    export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    exec "$@"
}

[ $# -ge 2 ] || usage
what=$1
[ "$what" != make ] || { suite=$2; shift; }
out=$(mkdir -p "$2" && cd "$2" && pwd)
root=$out/root
shift 2
case $what in
make) make_root "$suite" ;;
run) unshare --mount --pid --ipc --fork --kill-child "$0" enter "$out" "$@" ;;
enter) enter "$@" ;;
remove) rm -rf --one-file-system "$root" ;;
*) usage ;;
esac
