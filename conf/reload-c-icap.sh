#!/bin/sh
# Has c-icap read its configuration and its services' lists again, and returns when it has.
#
# Usage: reload-c-icap.sh [DIRECTORY]
#
# DIRECTORY (/run/c-icap) holds c-icap.pid and c-icap.ctl. c-icap ignores the order as long as a child
# of the last reload still has a connection. So the script gives it again until new children have
# started, for 80 seconds at most, which is less than systemd allows a reload. Calls that come at the
# same time take turns, so that each of them counts.
#
# Root becomes the user who owns DIRECTORY: this user may put links there, which root must not follow.
set -u

directory=${1:-/run/c-icap}
patience=${RELOAD_SECONDS:-80}

complain() {
    echo "reload-c-icap.sh: $*" >&2
    exit 1
}

owner=$(stat -L -c %u "$directory" 2>/dev/null) || complain "there is no directory $directory: start c-icap, or name the directory of its PidFile"
if [ "$(id -u)" = 0 ] && [ "$owner" != 0 ]; then
    exec setpriv --reuid="$owner" --regid="$(stat -L -c %g "$directory")" --clear-groups sh "$0" "$@"
fi

children() { cat "/proc/$server/task/$server/children" 2>/dev/null; }

# One that was not there before.
has_new_child() {
    for child in $(children); do
        case " $old " in
        *" $child "*) ;;
        *) return 0 ;;
        esac
    done
    return 1
}

server=$(cat "$directory/c-icap.pid" 2>/dev/null) && [ -d "/proc/$server" ] ||
    complain "no c-icap runs as $directory/c-icap.pid says: start it, or name the directory of its PidFile"
exec 9<"$directory/c-icap.pid"
flock -w "$patience" 9 || complain "another reload is still waiting: try again later"
old=$(children) || complain "the children of c-icap can not be read: run this as root or as c-icap's user"
old=$(echo $old)
until=$(($(date +%s) + patience))
while :; do
    [ -p "$directory/c-icap.ctl" ] || complain "$directory/c-icap.ctl is no pipe: restart c-icap"
    # Without a reader, the pipe would hold the script up for ever.
    timeout 5 sh -c 'printf reconfigure >"$1"' sh "$directory/c-icap.ctl" || complain "c-icap does not read $directory/c-icap.ctl: restart it"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.2
        has_new_child && { sleep 0.5; exit 0; } # the others start with it
        [ -d "/proc/$server" ] || complain "c-icap has ended: its ServerLog says why"
    done
    [ "$(date +%s)" -lt "$until" ] ||
        complain "c-icap has ignored the order for $patience seconds, as a child of the last reload still has a connection: try again later, or restart c-icap"
done
