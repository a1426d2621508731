#!/bin/bash
# Everything, from nothing, on a fresh Debian 12 or 13 (as root or with sudo):
#
#   - installs the packages that are missing, fetches the test data
#   - builds in ./build; unit tests and the check of includes (make check)
#   - end-to-end tests with real c-icap, nginx, Squid
#   - a part of them against a retort without any of its parts, and against one with ICAP alone (make check has their unit tests)
#   - what users see, compared with the golden files: commands, pages, logs, messages about configurations
#   - the services in c-icap, spoken to by an ICAP client of the tests, and the same tests with the services in the proxy
#   - the public suite http-cache-tests, through Retort in reverse and in forward mode and by HTTP/2
#   - a part of them again under valgrind: no error, no definite leak
#   - a second build with AddressSanitizer and UBSan in ./build/asan: unit and end-to-end tests again
#   - a third with ThreadSanitizer in ./build/tsan: what several workers share
#   - a fourth with clang's fuzzer in ./build/fuzz: each fuzzer for FUZZ_SECONDS (6), see docs/TESTING.md
#   - the guides as pages for a browser, with all links
#   - the Debian packages: built, installed in a fresh chroot, used, upgraded, purged
#   - each deployment in examples/ with --check
#
#     tests/run.sh [STEP...]     only these: build unit services golden e2e parts conformance memcheck
#                               asan tsan fuzz docs packages quickstart
#
# Further steps, which run only when they are named:
#
#     smoke                     the tests that find most, in at most 90 s on two processors: see docs/TESTING.md
#     quick                     the end-to-end tests but for the slowest: those that are not run with a sanitizer either
#     programs                  the unit tests alone, without the checks of sources and guides that make check adds
#     trixie, bookworm          the steps programs, quick, packages and quickstart in that release of Debian, in a chroot; as root
#     all                       the usual steps and trixie, as continuous integration does it
#
# What could not be tested here is listed at the end, by its reasons, and each test that failed, with the end of what it said.
# The last line counts; exit status 0 when nothing failed.
set -uo pipefail

source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$source_dir/build
cd "$source_dir" || exit 1
passed=0
failed=0
alone=0 # of those that passed, how many only alone (tests/unsteady.txt)
failed_steps=
took= # each step with its seconds; what ends behind its step is in none of them
jobs=$(nproc)
skipped=$build/skipped # a line for each test that did not run: the step, the test, a tab, why
failures=$build/failures # each test that failed: a line with the step and the test, then up to ten lines that it said
tsan_unit="tests/unit/common/unit-common tests/unit/proxy/unit-proxy" # those with threads
unit_programs="$tsan_unit tests/unit/services/unit-services"

heading() { printf '\n==== %s (%s s)\n' "$1" "$SECONDS"; }

# fail STEP [LOG]
fail() {
    failed=$((failed + 1))
    failed_steps="$failed_steps $1"
    echo "FAILED: $1"
    { echo "$1"; [ -z "${2:-}" ] || tail -10 "$2" | sed 's/^/    /'; } >>"$failures"
}

need() {
    "$@" && return
    fail "$*"
    finish
}

# The tests use Debian's packages of Python modules, which only Debian's own Python sees. Another one may be first in PATH,
# such as pyenv's.
use_python_of_debian() {
    mkdir -p "$build/python"
    ln -sfn /usr/bin/python3 "$build/python/python3"
    PATH=$build/python:$PATH
    unset PYTHONHOME PYTHONPATH
}

# note_skipped STEP LOG: what a log names as not run.
note_skipped() {
    sed -nE -e "s|^SKIP ([^ :]+): (.*)|$1 \1\t\2|p" -e "s|^not run: (.*)|$1\t\1|p" "$2" >>"$skipped"
}

# note_failed STEP LOG: the tests of a log that failed, with the end of what each said. A test that passed when it ran again
# is none of them.
note_failed() {
    awk -v step="$1" '
        function keep() { if (name != "") said[name, ++lines[name]] = "    " substr($0, 1, 300) }
        function begin(test) { name = test; lines[name] = 0; if (!(name in order)) named[++count] = name; order[name] = 1 }
        /^ok / { order[$2] = 0; name = ""; next }
        /^FAIL / { begin($2 ~ /^test_/ ? $2 : substr($0, 6)); next }
        /^FINDING: / { begin("finding"); keep(); next }
        /[^ ] +FAILED(: .*)?$/ { test = $0; sub(/( +[0-9.]+ s)? +FAILED.*/, "", test); begin(test); keep(); next }
        /^(SKIP |again, |failed:|passed only|[0-9]+ (s$|passed|tests))|  ok$| ok: / { name = ""; next }
        /^        (\| |[^ ]+:$)/ { next } # logs of programs
        /./ { keep() }
        END {
            for (i = 1; i <= count; i++) {
                if (!order[name = named[i]]) continue
                print step " " name
                for (j = lines[name] > 10 ? lines[name] - 9 : 1; j <= lines[name]; j++) print said[name, j]
            }
        }' "$2" >>"$failures"
}

list_failed() {
    [ -s "$failures" ] || return
    printf '\nwhat failed, and the end of what it said:\n'
    cat "$failures"
}

# Each reason, how many tests it kept from running, and some of them.
list_skipped() {
    [ -s "$skipped" ] || return
    printf '\nnot run here: %s tests\n' "$(wc -l <"$skipped")"
    awk -F '\t' '{ n = ++count[$2]; if (n <= 3) names[$2] = names[$2] (n > 1 ? ", " : "") $1 }
        END { for (why in count) printf "%5d  %s (%s%s)\n", count[why], why, names[why], (count[why] > 3 ? ", ..." : "") }' "$skipped" |
        sort -rn
}

finish() {
    list_skipped
    list_failed
    printf '\n%s s\n' "$SECONDS"
    [ -z "$took" ] || echo "seconds of each step:$took"
    [ -z "$failed_steps" ] || echo "failed steps:$failed_steps"
    echo "$alone of them passed only alone"
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
    exit
}

# counted NAME LOG STATUS: adds the log's closing "N passed, N failed"; a failure without one counts too.
counted() {
    note_skipped "$1" "$2"
    note_failed "$1" "$2"
    add_closing_line "$@"
}

add_closing_line() {
    local line
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$2" | tail -1)
    if [ -n "$line" ]; then
        passed=$((passed + $(echo "$line" | sed -E 's/^([0-9]+) passed.*/\1/')))
        failed=$((failed + $(echo "$line" | sed -E 's/^.* ([0-9]+) failed.*/\1/')))
        alone=$((alone + $(sed -nE 's/^([0-9]+) of them passed only alone$/\1/p' "$2" | tail -1 | grep . || echo 0)))
    fi
    if [ "${3:-1}" -ne 0 ]; then
        failed_steps="$failed_steps $1"
        case $line in
        *" 0 failed"* | "")
            failed=$((failed + 1))
            { echo "$1 ended with status ${3:-unknown}"; tail -10 "$2" | sed 's/^/    /'; } >>"$failures"
            ;;
        esac
    fi
}

# The same for make check: cases of the Check library where a log tells them, else programs.
counted_check() {
    local log cases bad
    while IFS= read -r log; do
        cases=$(sed -nE 's/^[0-9]+%: Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+).*/\1 \2 \3/p' "$log" |
            awk '{ all += $1; bad += $2 + $3 } END { if (NR) print all - bad, bad }')
        if [ -n "$cases" ]; then
            passed=$((passed + ${cases% *})) bad=${cases#* }
            failed=$((failed + bad))
        elif grep -q '^:test-result: PASS' "${log%.log}.trs"; then
            passed=$((passed + 1))
        elif grep -q '^:test-result: SKIP' "${log%.log}.trs"; then
            printf 'make check %s\t%s\n' "$(basename "${log%.log}")" "$(grep -v '^SKIP ' "$log" | tail -1)" >>"$skipped"
        else
            failed=$((failed + 1)) bad=1
        fi
        if [ "${bad:-0}" -gt 0 ]; then
            { echo "make check ${log#"$build"/}"; { grep -E '^[^ ]+:[0-9]+:[FE]:' "$log" || cat "$log"; } | tail -10 | sed 's/^/    /'; } >>"$failures"
        fi
        bad=0
    done < <(find "$1/tests" -name '*.log' -exec sh -c 'test -e "${1%.log}.trs"' _ {} \; -print)
    if [ "$2" -ne 0 ]; then
        failed_steps="$failed_steps make-check"
        find "$1/tests" -name '*.trs' -exec grep -L '^:test-result: PASS' {} + | while IFS= read -r trs; do
            tail -30 "${trs%.trs}.log"
        done
        [ $failed -gt 0 ] || failed=1
    fi
}

# build_in DIR OPTIONS...: a build tree; quiet unless it fails.
build_in() {
    local where=$1
    shift
    configure_in "$where" "$@" && make_in "$where" all && make_in "$where" check TESTS= &&
        make_in "$where" $e2e_programs && return
    tail -40 "$where/build.log"
    return 1
}

# build_part DIR TARGETS OPTIONS...: the same, of these targets and what the end-to-end tests need.
build_part() {
    local where=$1 targets=$2
    shift 2
    configure_in "$where" "$@" && make_in "$where" $targets $e2e_programs && return
    tail -40 "$where/build.log"
    return 1
}

configure_in() {
    local where=$1
    shift
    mkdir -p "$where"
    [ -e "$where/Makefile" ] || (cd "$where" && "$source_dir/configure" --enable-werror "$@") >"$where/build.log" 2>&1
}

make_in() {
    local where=$1
    shift
    make -C "$where" -j"$jobs" "$@" >>"$where/build.log" 2>&1
}

e2e_programs="tests/e2e/origin/origin tests/e2e/faults/disk_faults.la tests/e2e/volume/fill_volume"
tsan_programs="proxy/retort proxy/retortctl proxy/retort-icap-replay proxy/retort-logs common/retort-service icap-services/retort-helperd icap-services/gray-helper
    icap-services/text-helper icap-services/retort-adlist icap-services/retort-service-test $tsan_unit
    icap-services/adremover.la icap-services/gray.la icap-services/gzip.la icap-services/inject.la
    tests/e2e/modules/hello.la tests/e2e/modules/keeper.la tests/e2e/modules/odd.la tests/e2e/modules/other/odd.la tests/e2e/modules/outside.la
    examples/content-manager/manager.la"

build_for() {
    case $1 in
    asan) build_in "$build/asan" --enable-asan CFLAGS="-O1 -g" ;;
    tsan) build_part "$build/tsan" "$tsan_programs" --enable-tsan CFLAGS="-O1 -g" ;;
    fuzz) build_fuzzers ;;
    packages) tests/package/build.sh "$build" ;;
    bookworm | trixie) make_other "$1" ;;
    esac
}

build_fuzzers() {
    local where=$build/fuzz
    mkdir -p "$where"
    (cd "$where" && { [ -e Makefile ] || "$source_dir/configure" --enable-werror CC=clang --enable-fuzz CFLAGS="-O1 -g"; } &&
        make -j"$jobs" fuzzers) >"$where/build.log" 2>&1 && return
    tail -40 "$where/build.log"
    return 1
}

# The trees of later steps are built while tests that mostly wait are running. Whether that went
# well is asked when a step wants its tree: make finds nothing left to do, or fails again.
build_ahead() {
    (
        renice -n 19 "$BASHPID" >/dev/null
        build_each "$(grep -oE 'trixie|bookworm|packages' <<<"$steps")" & # which wait for other hosts, too
        build_each "$(grep -oE 'asan|tsan|fuzz' <<<"$steps")"
        wait
    ) &
    ahead=$!
}

build_each() {
    local step
    for step in $1; do
        build_for "$step" >/dev/null
        touch "$build/ahead.$step"
    done
}

await_tree() {
    while [ ! -e "$build/ahead.$1" ] && kill -0 "$ahead" 2>/dev/null; do
        sleep 0.5
    done
}

tree_of() {
    await_tree "$1"
    build_for "$1"
}

install() {
    tests/install.sh test >install.log 2>&1 && { tail -1 install.log; return; }
    tail -20 install.log
    return 1
}

# The test data comes from far away, while the compiler works.
fetched() {
    wait "$fetching" && return
    cat "$build/fetch.log"
    return 1
}

# make would take objects of one tree for another.
sources_are_not_configured() {
    [ -e config.status ] || return 0
    echo "This folder is a build tree itself (./configure), and no other tree can be built beside it. Run make distclean here first."
    return 1
}

autogen() {
    [ -x configure ] && [ configure -nt configure.ac ] && return
    ./autogen.sh >autogen.log 2>&1 || { tail -20 autogen.log; return 1; }
}

# The same beside other tests, in two parts. A program of unit tests keeps one processor busy for minutes, and the end-to-end
# tests mostly wait.
begin_check() {
    local where=$1
    shift
    (
        status=0
        make -C "$where" -j"$jobs" "$@" >"$where/check.log" 2>&1 || status=$?
        echo $status >"$where/check.status"
    ) &
    checking[$where]=$!
}

end_check() {
    [ -n "${checking[$1]:-}" ] || return
    wait "${checking[$1]}"
    unset "checking[$1]"
    heading "unit tests in $1, at their end"
    grep -E '^(PASS|FAIL|ERROR|XPASS|SKIP):' "$1/check.log"
    grep -E 'error:|\*\*\*' "$1/check.log" | head -20
    counted_check "$1" "$(cat "$1/check.status")"
}

e2e() {
    local name=$1 where=$2 status=0
    shift 2
    tests/e2e/run.py --builddir "$where" --jobs 4 --again "$@" 2>&1 | tee "$where/$name.log"
    status=${PIPESTATUS[0]}
    counted "$name" "$where/$name.log" "$status"
}

# services_at HOST [NAME...]: those tests of the services; the status becomes the last line of the log.
services_at() {
    local status=0 log=$build/services-$1.log host=$1
    shift
    tests/e2e/services/run.py --builddir "$build" --host "$host" "$@" >"$log" 2>&1 || status=$?
    sed -nE 's/^([0-9]+) tests, ([0-9]+) failed.*/\1 \2/p' "$log" |
        { read -r all bad && echo "$((all - bad)) passed, $bad failed" >>"$log"; }
    echo "exit status $status" >>"$log"
}

# In c-icap alone, since many of these tests are about time; in the proxy meanwhile in two ways that keep each a processor busy.
services() {
    local host log
    services_at icap
    services_at inside &
    local whole=$!
    services_at thread test_gzip test_adremover test_inject_a test_gray_gif test_many
    services_at process test_gzip test_adremover test_inject_a test_gray_gif test_many
    wait $whole
    for host in icap inside thread process; do
        log=$build/services-$host.log
        heading "services: $host"
        cat "$log"
        counted "services-$host" "$log" "$(sed -n 's/^exit status //p' "$log" | tail -1)"
    done
}

golden() {
    local status=0
    tests/golden/run.py --builddir "$build" 2>&1 | tee "$build/golden.log"
    status=${PIPESTATUS[0]}
    counted golden "$build/golden.log" "$status"
}

# Tests of the cache that wait little.
cache_quick="cache.test_what cache.test_fields cache.test_max_age cache.test_vary cache.test_revalidation cache.test_304_f cache.test_conditional
    cache.test_head_from cache.test_request cache.test_stale cache.test_unsafe cache.test_a_304 cache.test_auth cache.test_hits"

# What finds most in little time: the unit tests of common/, and end-to-end tests of each way through the proxy.
smoke() {
    local name filters=()
    begin_check "$build" check-TESTS TESTS="tests/unit/common/unit-common tests/unit/services/unit-services tests/check-includes.sh" check_PROGRAMS= check_LTLIBRARIES=
    for name in forward. reverse. framing. collapse ranges. $cache_quick keepalive http2. http2_origin. tls_listeners connect. icap_messages icap_verdicts \
        icap_bodies icap_previews icap_chains icap_mixed inside. access. limits. settings. reload. errors. origins.test_f disk.test_ admin.test_; do
        filters+=(--filter "test_$name")
    done
    e2e smoke "$build" --quick "${filters[@]}"
    end_check "$build"
}

# parts_alone NAME LEAST FILTER...: end-to-end tests against a retort that is linked from the objects of the build with fewer parts.
# A test that asks for a part is left out, by what retort says; so at least LEAST of them have to pass.
parts_alone() {
    local name=$1 least=$2 ran filter filters=()
    shift 2
    for filter; do
        filters+=(--filter "test_$filter")
    done
    if (cd "$build" && "$source_dir/tests/link-parts.sh" --no-unit "$name") >"$build/link-$name.log" 2>&1; then
        e2e "parts-$name" "$build" --quick --parts "$name" "${filters[@]}"
        ran=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' "$build/parts-$name.log" | tail -1)
        [ "${ran:-0}" -ge "$least" ] || fail "parts-$name: ${ran:-0} tests passed, fewer than $least"
    else
        fail "link-$name" "$build/link-$name.log"
    fi
}

# The core alone, and the core with ICAP. make check, which links them too, runs their unit tests.
parts() {
    end_check "$build"
    parts_alone none 321 forward. forwarding. reverse framing. cpdos connect. upgrade. trailers. bodies. errors. urls. keepalive. collapse. \
        ranges. parts. policy. $cache_quick origins. parents. tls_listeners. tls_origins. tls_attacks. log. log_targets. reload. signals.
    parts_alone minimal 154 forward. reverse. connect.test_t cache.test_what cache.test_revalidation ranges. \
        icap_requests icap_messages icap_bodies icap_previews icap_chains icap_verdicts icap_cache icap_options icap_connections icap_mixed icap_cicap
}

conformance() {
    local status=0 log=$build/conformance.log
    tests/e2e/conformance/run.sh "$build" >"$log" 2>&1 || status=$?
    cat "$log"
    counted conformance "$log" $status
}

fuzz() {
    local status=0 where=$build/fuzz log=$build/fuzz.log
    if ! tree_of fuzz; then
        fail fuzz-build "$build/fuzz/build.log"
        return
    fi
    FUZZ_SECONDS=${FUZZ_SECONDS:-6} tests/fuzz/run.sh "$where" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    counted fuzz "$log" "$status"
}

docs() {
    if docs/build-site.sh "$build/site"; then passed=$((passed + 1)); else fail docs; fi
}

# The packages are tried beside the steps behind this one, as both mostly wait.
begin_packages() {
    rm -f "$build/packages.log" "$build/packages.status"
    (
        status=0
        await_tree packages
        tests/package/run.sh "$build" >"$build/packages.log" 2>&1 || status=$?
        echo $status >"$build/packages.status"
    ) &
    packing=$!
}

end_packages() {
    [ -n "$packing" ] || return
    wait "$packing"
    heading "packages, at their end"
    cat "$build/packages.log"
    counted packages "$build/packages.log" "$(cat "$build/packages.status")"
}
# Another release of Debian, where this script runs again: first it installs packages and builds, then it tests.
make_other() {
    local where=$build/other-$1 status=0
    [ ! -e "$where/made" ] || return 0
    mkdir -p "$where"
    { tests/other-debian.sh make "$1" "$where" && tests/other-debian.sh run "$where" tests/run.sh build; } >"$where/made.log" 2>&1 || status=$?
    [ $status -ne 0 ] || touch "$where/made"
    return $status
}

begin_other() {
    local where=$build/other-$1
    rm -f "$where/status" "$where/log"
    (
        status=0
        await_tree "$1"
        make_other "$1" || status=$?
        case $status in
        0) tests/other-debian.sh run "$where" tests/run.sh programs quick packages quickstart >"$where/log" 2>&1 || status=$? ;;
        77) status=0 && cp "$where/made.log" "$where/log" ;;
        *) tail -40 "$where/made.log" >"$where/log" ;;
        esac
        echo $status >"$where/status"
    ) &
    other[$1]=$!
}

# end_other SUITE: with its lists of what was not run and of what failed.
end_other() {
    local where=$build/other-$1 inner=$build/other-$1/root/root/retort/build
    wait "${other[$1]}"
    heading "$1, at its end"
    cat "$where/log"
    if [ -e "$where/made" ]; then
        sed "s/^/$1: /" "$inner/skipped" >>"$skipped"
        sed "s/^\([^ ]\)/$1: \1/" "$inner/failures" >>"$failures"
    else
        note_skipped "$1" "$where/log"
    fi
    add_closing_line "$1" "$where/log" "$(cat "$where/status")"
    rm -f "$where/made"
    tests/other-debian.sh remove "$where"
}

packing=
declare -A other    # the process of the tests in another release
declare -A checking # the process of the unit tests under way in a tree

# Deployments: each --check mostly waits, so three run at a time. A comma stands before an option.
deployments="quickstart.sh quickstart.sh,--inside intercept/run.sh two-hosts/run.sh virus-scanner/run.sh filter/run.sh accelerator/run.sh mobile/run.sh
    browser/run.sh behind-squid/run.sh guard/run.sh fleet/run.sh content-manager/run.sh"

# The log of an example.
log_of() {
    local folder
    folder=$(dirname "examples/$1")
    echo "$build/example-$(basename "$folder")$(sed -n 's/.*,-//p' <<<"$1")-check.log"
}

# check_example NAME: its status goes to the last line of the log.
check_example() {
    local status=0
    # shellcheck disable=SC2046
    "examples/${1%%,*}" --check --no-install --builddir "$build" $(sed -n 's/.*,//p' <<<"$1") >"$(log_of "$1")" 2>&1 || status=$?
    echo "exit status $status" >>"$(log_of "$1")"
}

quickstart() {
    local name status log good bad running=()
    for name in $deployments; do
        if ! can_run "${name%%,*}" >"$build/not-run.log"; then
            cat "$build/not-run.log"
            note_skipped examples "$build/not-run.log"
            continue
        fi
        check_example "$name" &
        running+=($!)
        if [ $((${#running[@]} % 3)) -eq 0 ]; then wait "${running[@]}"; fi
    done
    wait "${running[@]}"
    for name in $deployments; do
        log=$(log_of "$name")
        [ -e "$log" ] || continue
        heading "examples/${name/,/ } --check"
        cat "$log"
        status=$(sed -n 's/^exit status //p' "$log" | tail -1)
        good=$(grep -cE ' ok$' "$log") bad=$(grep -cE ' FAILED$' "$log")
        echo "$good passed, $bad failed" >>"$log"
        counted "$name" "$log" "$status"
    done
}

# What an example needs beyond what tests/install.sh must install.
can_run() {
    rm -f "$(log_of "$1")"
    case $1 in
    two-hosts/*) unshare --net true 2>/dev/null || { echo "not run: examples/$1 needs to make network namespaces"; return 1; } ;;
    virus-scanner/*)
        [ -e /usr/lib/x86_64-linux-gnu/c_icap/virus_scan.so ] || { echo "not run: examples/$1 needs libc-icap-mod-virus-scan"; return 1; }
        command -v clamd >/dev/null || { echo "not run: examples/$1 needs clamav-daemon"; return 1; }
        ;;
    esac
}

mkdir -p "$build"
: >"$skipped"
: >"$failures"
use_python_of_debian
usual="build unit services golden e2e parts conformance memcheck asan tsan fuzz docs packages quickstart"
case "$*" in
"") steps=$usual ;;
all) steps="${usual/tsan/trixie tsan}" ;;
*) steps=$* ;;
esac
heading installation
need install
heading "build and test data"
tests/data/fetch.sh >"$build/fetch.log" 2>&1 &
fetching=$!
need sources_are_not_configured
need autogen
need build_in "$build"
need fetched
rm -f "$build"/ahead.* "$build"/other-*/made
build_ahead
for step in $steps; do
    heading "$step"
    began=$SECONDS
    case $step in
    build) passed=$((passed + 1)) ;;
    unit) begin_check "$build" check ;;
    programs) begin_check "$build" check TESTS="$unit_programs" ;;
    services) services ;;
    e2e)
        end_check "$build"
        e2e e2e "$build"
        e2e e2e-inside "$build" --host inside --filter test_services.test_pages --filter test_services.test_ph --filter test_services.test_pl --filter test_services.test_gzip \
            --filter test_services.test_ads --filter test_services.test_inject --filter test_services.test_list --filter test_services.test_what
        e2e e2e-thread "$build" --host thread --filter test_inside.test_a --filter test_inside.test_what --filter test_inside.test_both \
            --filter test_inside_cache. --filter test_inside_faults.test_each --filter test_inside_faults.test_a_body
        e2e e2e-process "$build" --host process --filter test_inside. --filter test_services.test_pages \
            --filter test_inside_cache. --filter test_inside_faults.test_each --filter test_inside_faults.test_a_body
        ;;
    parts) parts ;;
    smoke) smoke ;;
    golden) golden ;;
    conformance) conformance ;;
    memcheck) e2e memcheck "$build" --valgrind ;;
    asan)
        if tree_of asan; then
            begin_check "$build/asan" check TESTS="$unit_programs"
            e2e e2e-asan "$build/asan"
            end_check "$build/asan"
        else
            fail asan-build "$build/asan/build.log"
        fi
        ;;
    tsan)
        if tree_of tsan; then
            begin_check "$build/tsan" check-TESTS TESTS="$tsan_unit" check_PROGRAMS= check_LTLIBRARIES=
            e2e e2e-tsan "$build/tsan" --filter test_collapse --filter test_config --filter test_signals \
                --filter test_content --filter test_policy --filter test_keepalive --filter test_disk. --filter test_disk_volume \
                --filter test_disk_content --filter test_disk_removal --filter test_disk_crash --filter test_origins. \
                --filter test_patience --filter test_fleet.test_a_purge --filter test_fleet.test_engine_away --filter test_fleet.test_a_process \
                --filter test_record.test_several_workers --filter test_icap_remembered.test_never \
                --filter test_icap_remembered.test_many --filter test_icap_verdicts.test_workers \
                --filter test_tls_attacks.test_tickets --filter test_intercept_attacks.test_flood \
                --filter test_limits.test_concurrent --filter test_limits.test_users --filter test_limits.test_bandwidth \
                --filter test_limits.test_one_client --filter test_service_events.test_timer --filter test_service_events.test_reload \
                --filter test_service_events.test_lines --filter test_service_events.test_conn --filter test_identity.test_guessing --filter test_identity.test_a_reload \
                --filter test_service_control.test_no_request --filter test_inside.test_max_messages \
                --filter test_service_content.test_many_at_once --filter test_service_content.test_operations_outlive \
                --filter test_service_content.test_the_process_ends --filter test_service_content.test_a_closed_fetch \
                --filter test_runs.test_reloads --filter test_runs.test_many --filter test_runs.test_three \
                --filter test_service_manager.test_signs --filter test_inside.test_another
        else
            fail tsan-build "$build/tsan/build.log"
        fi
        ;;
    fuzz) fuzz ;;
    docs) docs ;;
    packages) begin_packages ;;
    quick) e2e quick "$build" --quick ;;
    bookworm | trixie) begin_other "$step" ;;
    quickstart) quickstart ;;
    *) fail "no such step: $step" ;;
    esac
    took="$took $step $((SECONDS - began))"
done
for tree in "$build" "$build/asan" "$build/tsan"; do
    end_check "$tree"
done
end_packages
for suite in "${!other[@]}"; do
    end_other "$suite"
done
finish
