#!/bin/sh
# Holds the C sources to .clang-format, as clang-format 14 reads it; other versions differ in
# details and are not asked. Prints each file that it would write otherwise. One check a file.
#
# Usage: check-format.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is not installed: apt-get install clang-format-14"; exit 77; }

all=$(find common proxy icap-services tests examples -path tests/data -prune -o -name '*.[ch]' -print | LC_ALL=C sort)
# shellcheck disable=SC2086
said=$(clang-format-14 --dry-run -Werror $all 2>&1)
status=$?
bad=$(echo "$said" | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: code should be.*/\1/p' | sort -u)
for file in $bad; do
    echo "$file: not as .clang-format says: clang-format-14 -i $file"
done
failed=$(echo "$bad" | grep -c .)
echo "$(($(echo "$all" | wc -l) - failed)) passed, $failed failed"
exit $status
