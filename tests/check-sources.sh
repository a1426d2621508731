#!/bin/sh
# Holds that a local.mk names each source file, so that a source package has it: the compiler finds a header that is named nowhere
# as long as it works in this tree, and does not miss it.
# Prints each file that is missing. One check a source file.
# Usage: check-sources.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1

find common proxy icap-services -type f \( -name '*.[ch]' -o -name '*.def' \) | LC_ALL=C sort |
LC_ALL=C awk '
FILENAME != "-" {
    for (i = 1; i <= NF; i++)
        named[$i] = 1
    next
}
{
    count++
    if (!($0 in named)) {
        print $0 ": no local.mk names it"
        missing++
    }
}
END {
    printf "%d passed, %d failed\n", count - missing, missing
    exit missing > 0
}' common/local.mk proxy/local.mk $(ls proxy/parts/*/local.mk 2>/dev/null) icap-services/local.mk -
