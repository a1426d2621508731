#!/bin/bash
# Holds the model of the fleet's promise (promises.pml), in each order in which things may happen, and does the model find the
# mistakes that it knows? Usage: check-fleet-model.sh, in a build directory, by make check.
here=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "spin is not installed: apt-get install spin"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
passed=0 failed=0

# model WORDS...: the number of errors that Spin finds.
model() {
    spin -a "$@" "$here/fleet/promises.pml" >spin.out 2>&1 && gcc -O2 -w -DSAFETY -o pan pan.c && ./pan -m1000000 >pan.out 2>&1
    sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.out
}

count() { # TRUTH TEXT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $2" && tail -20 pan.out spin.out; fi
}

[ "$(model)" = 0 ] && ! grep -q "not completed\|max search depth" pan.out
count $? "the promise does not hold"
echo "$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' pan.out) states"
for mistake in FORGETS TRUSTS LATE; do
    [ "$(model -D$mistake)" = 1 ]
    count $? "the model does not find the mistake $mistake"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
