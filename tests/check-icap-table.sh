#!/bin/sh
# Holds the table of docs/ICAP.md to the tests: each one that it names exists, and the rows are 1 to 30.
# Usage: check-icap-table.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
passed=0
failed=0
for name in $(grep -oE 'test_icap(_[a-z]+)?\.test_[a-z0-9_]+' docs/ICAP.md | sort -u); do
    if grep -q "^def ${name#*.}(lab" "tests/e2e/${name%%.*}.py"; then
        passed=$((passed + 1))
    else
        echo "docs/ICAP.md names $name, which tests/e2e/${name%%.*}.py does not have"
        failed=$((failed + 1))
    fi
done
rows=$(grep -oE '^\| [0-9]+ \|' docs/ICAP.md | tr -dc '0-9\n' | tr '\n' ' ')
if [ "$rows" = "$(seq 1 30 | tr '\n' ' ')" ]; then
    passed=$((passed + 1))
else
    echo "docs/ICAP.md: rows $rows instead of 1 to 30"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 1 ]
