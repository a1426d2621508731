#!/bin/bash
# Runs the fuzzers of a build tree (./configure CC=clang --enable-fuzz && make fuzzers), each from
# its corpus, two at a time.
#
#     tests/fuzz/run.sh BUILDDIR [NAME...]      NAME as in tests/fuzz/corpus
#
# Without names all of them run but for `compare`, which looks for differences that nobody has
# explained yet rather than for failures; `make check` holds those that are known.
#
# FUZZ_SECONDS (10) is how long each one runs, FUZZ_JOBS (the number of cores) how many at a time.
# FUZZ_GROW=DIRECTORY keeps what was found between runs, in a directory for each fuzzer. An input
# that fails, and the log of its run, are kept in BUILDDIR/fuzz; the last line counts the fuzzers.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${1:?"usage: tests/fuzz/run.sh BUILDDIR [NAME...]"}
shift
seconds=${FUZZ_SECONDS:-10}
jobs=${FUZZ_JOBS:-$(nproc)}
output=$build/fuzz
mkdir -p "$output"
rm -f "$output"/*.result

all_names() {
    find "$build/tests/fuzz" -name 'fuzz_*' -type f -perm -u+x ! -name '*.o' 2>/dev/null | sed 's|.*/fuzz_||' | grep -vx compare | sort -u
}

# One fuzzer. What it finds goes to a directory of its own: the committed corpus stays as it is.
run_one() {
    local name=$1 program=$build/tests/fuzz/fuzz_$1 log=$output/$1.log found=${FUZZ_GROW:-$output/found}/$1 status=0 options=()
    [ -x "$program" ] || { echo "$name: no such fuzzer in $build" && echo FAIL >"$output/$name.result"; return; }
    mkdir -p "$found"
    [ -e "$here/http.dict" ] && options+=("-dict=$here/http.dict")
    [ -d "$here/corpus/$name" ] && options+=("$here/corpus/$name")
    rm -f "$output/$name-"*
    "$program" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$output/$name-" -print_final_stats=1 "$found" "${options[@]}" \
        >"$log" 2>&1 || status=$?
    if [ $status -eq 0 ]; then
        printf '%-10s ok: %s runs, %s edges\n' "$name" \
            "$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log")" \
            "$(grep -aoE 'cov: [0-9]+' "$log" | tail -1 | cut -c6-)"
        echo PASS >"$output/$name.result"
    else
        printf '%-10s FAILED: %s; again with\n    %s %s\n' "$name" \
            "$(grep -aEm1 'assertion failed|ERROR:|SUMMARY:|runtime error' "$log" || echo "status $status")" \
            "$program" "$(find "$output" -name "$name-*" -type f | head -1)"
        echo FAIL >"$output/$name.result"
    fi
}

if [ $# -gt 0 ]; then names=$*; else names=$(all_names); fi
[ -n "$names" ] || { echo "no fuzzers in $build: ./configure CC=clang --enable-fuzz && make fuzzers"; }
for name in $names; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    run_one "$name" &
done
wait
passed=$(cat "$output"/*.result 2>/dev/null | grep -c PASS)
failed=$(cat "$output"/*.result 2>/dev/null | grep -c FAIL)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
