#!/bin/sh
# The routes that TPROXY needs: packets with mark 1 are for this machine, whatever their destination.
#
#     tproxy-routes.sh up | down
set -eu
case ${1:-} in
up) action=add ;;
down) action=del ;;
*) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
for family in -4 -6; do
    ip "$family" rule "$action" fwmark 1 lookup 100
    ip "$family" route "$action" local default dev lo table 100
done
