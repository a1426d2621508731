#!/bin/bash
# Links proxy/retort-NAME and its unit tests, tests/unit/proxy/unit-proxy-NAME, from the objects of a build that has more parts. The
# suites of a part that is left out are left out with it: proxy/parts/PART/local.mk lists them.
# Usage: link-parts.sh [--no-unit] NAME [PART...], in a build directory. The NAME minimal alone stands for its parts.

top=$(cd "$(dirname "$0")/.." && pwd)
programs=(proxy/retort tests/unit/proxy/unit-proxy)
[ "$1" != --no-unit ] || { programs=(proxy/retort) && shift; }
name=$1
shift
[ "$name" = minimal ] && [ $# = 0 ] && set -- adapt icap

# The files of unit tests that a part has.
tests_of() { # PART
    awk '/SOURCES \+?=/ { tests = /^tests_unit_proxy_unit_proxy_/ }
        tests { for (i = 1; i <= NF; i++) if ($i ~ /\.c$/) print $i }
        !/\\$/ { tests = 0 }' "$top/proxy/parts/$1/local.mk" | sed 's/.*\///; s/\.c$//'
}

declared= rows= pages= page_rows= left_out=
for path in "$top"/proxy/parts/*/; do
    part=$(basename "$path")
    if [[ " $* " == *" $part "* ]]; then
        declared="$declared PART($part)" rows="$rows PART(${part^^}, $part),"
        [[ " $* " == *" admin "* && -e $path/pages.c ]] &&
            pages="$pages PAGES($part)" page_rows="$page_rows PAGES(${part^^}, $part),"
    else
        left_out="$left_out $(tests_of "$part" | tr '\n' ' ')"
    fi
done
sed -e "s/@configure_input@/Made by tests\/link-parts.sh/" -e "s/@parts_declared@/$declared/" -e "s/@parts_listed@/$rows/" \
    -e "s/@pages_declared@/$pages/" -e "s/@pages_listed@/$page_rows/" \
    "$top/proxy/parts.c.in" >"proxy/parts-$name.c"
rm -f "proxy/libproxy-$name.a" "${programs[@]/%/-$name}"
exec "${MAKE:-make}" -s WITH="$name" PARTS="$*" LEFT_OUT="$left_out" "${programs[@]/%/-$name}"
