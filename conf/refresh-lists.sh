#!/bin/sh
# Fetches the ad remover's lists and has c-icap read them where one has changed. retort-lists.timer
# runs it each day; docs/SERVICES.md says how it is set up.
#
# Usage: refresh-lists.sh DIRECTORY
#
# DIRECTORY/sources has a line for each list: a file name in DIRECTORY, a blank, a URL. What can't be
# fetched, or has less than half of the rules that the old file has, leaves the old file in place:
# the script says so, goes on with the next one, and exits with 1.
#
# RETORTCTL and RELOAD in the environment take the place of the commands "retortctl" and "systemctl
# reload c-icap".
set -u

directory=${1:?usage: refresh-lists.sh DIRECTORY}
retortctl=${RETORTCTL:-retortctl}
reload=${RELOAD:-systemctl reload c-icap}
changed=0 failed=0

rules() { "$retortctl" adlist check "$1" 2>/dev/null | sed -n 's/^ *\([0-9]*\) rules in use$/\1/p'; }

# Leaves it in $1.new; says why not.
fetch() {
    curl -fsSL --max-time 300 --max-filesize 100000000 -o "$1.new" -- "$2" || return 1
    if [ "$(head -c 1 "$1.new" | tr -d '\0')" = "<" ]; then
        echo "refresh-lists.sh: $2 is a page, no list: the old list stays" >&2
        return 1
    fi
    new=$(rules "$1.new") old=0
    [ ! -e "$1" ] || old=$(rules "$1")
    [ "${new:-0}" -gt 0 ] && [ $((2 * new)) -ge "${old:-0}" ] && return 0
    echo "refresh-lists.sh: $2 has ${new:-0} rules, where there were ${old:-0}: the old list stays" >&2
    return 1
}

while read -r name url; do
    case $name in
    '' | '#'*) continue ;;
    */* | .*) echo "refresh-lists.sh: $name is no file name" >&2; failed=1; continue ;;
    esac
    if ! fetch "$directory/$name" "$url"; then
        failed=1
        rm -f "$directory/$name.new"
    elif cmp -s "$directory/$name" "$directory/$name.new"; then
        rm -f "$directory/$name.new"
    else
        mv "$directory/$name.new" "$directory/$name" && changed=1
    fi
done <"$directory/sources"

[ "$changed" = 0 ] || $reload || failed=1
exit "$failed"
