#!/bin/sh
# Holds CONTRIBUTING.md to the tree: each file, folder and test that it names is there. One check a name.
# Usage: check-contributing.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
passed=0
failed=0

# What stands between backticks or in commands and has a folder in front; NAME stands for any name.
paths=$(grep -oE '\b(common|proxy|icap-services|tests|docs|conf|examples)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*/]' CONTRIBUTING.md |
    grep -vE 'NAME|tests/unit/[a-z]+/unit-|^proxy/retort$' | sort -u)
for path in $paths; do
    # shellcheck disable=SC2086
    if ls -d $path >/dev/null 2>&1; then
        passed=$((passed + 1))
    else
        echo "CONTRIBUTING.md: there is no $path"
        failed=$((failed + 1))
    fi
done
for name in $(grep -oE -- '(--filter|--builddir build) (test_[a-z]+\.)?test_[a-z_]+' CONTRIBUTING.md | sed 's/.* //; s/.*\.//' | sort -u); do
    if grep -rqE "^def $name" tests/e2e --include='*.py'; then
        passed=$((passed + 1))
    else
        echo "CONTRIBUTING.md: there is no test $name"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
