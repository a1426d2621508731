# What run.sh and inside.sh share: the rows of their table, and commands inside the chroot. The caller sets $out and $root.
passed=0
failed=0

row() { printf '%-78s %s\n' "$1" "$2"; }

# verify WHAT COMMAND...: what a command that fails says is shown.
verify() {
    local what=$1
    shift
    if "$@" >"$out/it.out" 2>&1; then
        row "$what" ok
        passed=$((passed + 1))
    else
        row "$what" FAILED
        tail -n 8 "$out/it.out" | sed 's/^/    /'
        failed=$((failed + 1))
    fi
}
not() { ! "$@"; }

# The stand-in for systemctl comes before Debian's.
path=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
inside() { chroot "$root" env -i PATH=$path LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
