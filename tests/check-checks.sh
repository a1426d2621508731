#!/bin/sh
# Do the checks notice what they are for? Each gets a small tree that fits, and one that doesn't for every rule: what it says of
# these is asked for. One check a rule.

here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

# A tree that all checks are content with.
tree() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/common/base" "$scratch/tree/proxy/core/net" "$scratch/tree/icap-services/gray"
    cd "$scratch/tree" || exit 1
    cat >common/base/box.h <<'END'
/*
 * A box.
 *
 *     struct box *box = box_new(BOX_LARGE);      NULL: no memory
 *     box->weight = 3;
 *     if (box_holds(box, thing, ...)) ...
 *     box_free(&box);
 */
enum box_size { BOX_SMALL, BOX_LARGE };
struct lid {
    int colour;
};
struct box {
    int weight;
    struct lid *lid;
};
struct box *box_new(enum box_size size);
bool box_holds(const struct box *box, int thing, int count);
void box_free(struct box **boxp);
END
    printf '#include "base/box.h"\n\nstatic int box_weigh(void) {\n}\n' >common/base/box.c
    printf '#include "base/box.h"\n\nstatic int wire_pull(void) {\n}\n' >proxy/core/net/wire.c
    printf '#include "base/box.h"\n' >icap-services/gray/gray.c
    echo 'SOURCES = common/base/box.c common/base/box.h' >common/local.mk
    echo 'SOURCES = proxy/core/net/wire.c' >proxy/local.mk
    echo 'SOURCES = icap-services/gray/gray.c' >icap-services/local.mk
}

# expect CHECK TEXT: it fails, and says that. Without a text it passes.
expect() {
    if said=$("$here/check-$1.sh" "$scratch/tree" 2>&1); then status=0; else status=1; fi
    case "$status:$2:$said" in
    0::*) passed=$((passed + 1)) ;;
    1:?*:*"${2:-nothing}"*) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "check-$1.sh should have said: ${2:-nothing}; it said:"
        echo "$said" | sed 's/^/    /'
        ;;
    esac
}

# wrong_example SED TEXT: the header with one line changed.
wrong_example() {
    tree
    sed -i "$1" common/base/box.h
    expect headers "common/base/box.h:$2"
}

for check in headers names includes; do
    tree
    expect $check ""
done

wrong_example 's/box_free(&box);/box_free(\&box, 1);/' "7: box_free is given 2 arguments, and takes 1"
wrong_example 's/thing, ...))/thing))/' "6: box_holds is given 2 arguments, and takes 3"
wrong_example 's/ box_free(&box);/ box_drop(\&box);/' "7: box_drop is not declared anywhere"
wrong_example 's/box->weight = 3/box->size = 3/' "5: struct box has no member size"
wrong_example 's/box->weight = 3/other->size = 3/' "5: no struct has a member size"
wrong_example 's/box->weight = 3/box_free(box->lid)/' "5: box_free is given a struct lid, and takes a struct box"
wrong_example 's/box_new(BOX_LARGE)/box_new(BOX_HUGE)/' "4: there is no constant BOX_HUGE"
wrong_example 's/struct box \*box = box_new/struct bag *box = box_new/' "4: there is no struct bag"
wrong_example '/^ \*   /d' "1: declares 3 functions, and its opening comment has no example"
wrong_example '1,8d' "1: does not open with a comment"

tree
sed -i 's/wire_pull/box_weigh/' proxy/core/net/wire.c
expect names "proxy/core/net/wire.c:3: there is a static box_weigh in another file too"
tree
sed -i 's/static int wire_pull/static __attribute__((cold)) int box_weigh/' proxy/core/net/wire.c
expect names "proxy/core/net/wire.c:3: there is a static box_weigh in another file too"

# include FILE HEADER TEXT: what is said when FILE includes HEADER, a path from the top that exists. Without a text it is allowed.
include() {
    tree
    mkdir -p "$(dirname "$1")" "$(dirname "$2")"
    touch "$2"
    printf '#include "%s"\n' "${2#*/}" >"$1"
    expect includes "${3:+$1:1: \"${2#*/}\" $3}"
}

include common/base/a.c common/event/loop.h "goes up: common/base/ may not include common/event/"
include common/event/a.c common/http/url.h "goes sideways: common/event/ and common/http/ never include one another"
include common/base/a.c proxy/core/net/dial.h "leads out of common/"
include proxy/core/match/a.c proxy/core/net/address.h ""
include proxy/core/net/a.c proxy/core/match/regex.h "goes up"
include proxy/core/match/a.c proxy/core/settings/settings.h "goes up"
include proxy/core/net/a.c proxy/core/origin/call.h "goes up"
include proxy/core/cache/a.c icap-services/gray/gray.h "leads to icap-services/"
include proxy/core/client/a.c proxy/core/origin/call.h "goes sideways"
include proxy/core/client/a.c proxy/core/client/http1/parser.h "goes up"
include proxy/core/client/http1/a.c proxy/core/client/exchange.h ""
include proxy/core/client/http1/a.c proxy/core/origin/call.h "goes sideways"
include proxy/core/worker.c proxy/core/client/http1/parser.h ""
include proxy/core/main.c proxy/core/client/http1/parser.h "leads into proxy/core/client/http1/, which is closed to this file"
include proxy/core/transaction/a.c proxy/core/client/http1/parser.h "leads into proxy/core/client/http1/"
include proxy/core/transaction/steps/a.c proxy/core/client/http1/parser.h "leads into proxy/core/client/http1/"
include proxy/core/transaction/steps/a.c proxy/core/transaction/transaction.h ""
include proxy/core/transaction/a.c proxy/core/transaction/steps/fetch.h ""
include icap-services/gray/a.c proxy/core/net/dial.h "leads to proxy/"
include icap-services/gray/a.c icap-services/gzip/encoder.h "goes sideways"
include icap-services/gray/a.c icap-services/helpers/recipe.h "goes up"
include proxy/core/net/a.c proxy/new/room.h "leads to proxy/new/, which has no rank"

tree
mkdir proxy/new && : >proxy/new/room.c
expect includes "proxy/new/room.c:1: stands in proxy/new/, which has no rank"
tree
mkdir proxy/core/net/deep && : >proxy/core/net/deep/room.c
expect includes "proxy/core/net/deep/room.c:1: stands in proxy/core/net/deep/, which has no rank"
tree
printf '#include "../base/box.h"\n' >common/base/a.c
expect includes "names a path with dots"
tree
printf '#include <c_icap/service.h>\n' >icap-services/gray/a.c
expect includes "is of c-icap"

# part FILE HEADER TEXT: likewise, with the parts one and two, which needs one.
part() {
    tree
    mkdir -p proxy/parts/one proxy/parts/two
    printf 'PART(ONE, one, "", "what it does",\nPART(TWO, two, "one", "what it does",\n' >proxy/parts.def
    touch "proxy/parts/$2"
    printf '#include "%s"\n' "$2" >"$1"
    expect includes "${3:+$1:1: \"$2\" $3}"
}

part proxy/parts/two/a.c one/one.h ""
part proxy/parts/one/a.c two/two.h "leads into the part two"
part proxy/core/net/a.c one/one.h "leads into the part one, and the core includes no part"

# guide LINE TEXT: what is said of a guide with this line. Without a text it is good.
guide() {
    tree
    mkdir -p docs proxy/parts/admin proxy/tools tests/e2e
    printf 'WORDS(.name = "set",\nCOMMAND(.name = "cache",\nWORDS(.name = "cache purge",\n' >proxy/parts/admin/calls.def
    printf '# Options\n\n### client.memory\n\n## What is where?\n' >docs/CONFIGURATION.md
    printf 'COUNTER(memory_refused)\n' >proxy/parts/admin/counters.def
    printf 'def test_hit(lab):\n' >tests/e2e/test_cache.py
    printf '# Guide\n\n%s\n' "$1" >docs/GUIDE.md
    printf 'See [the guide](docs/GUIDE.md#guide).\n' >README.md
    expect docs "${2:+docs/GUIDE.md:3: $2}"
}

long=$(printf 'word %.0s' $(seq 25))
guide "$long" "longer than 120 columns"
guide "| $long |" ""
guide "    $long" ""
guide "Read [this](CONFIGURATION.md#what-is-where)." ""
guide "Read [this](NOWHERE.md)." "the link points to nothing: NOWHERE.md"
guide "Read [this](CONFIGURATION.md#who-is-where)." "no heading has this anchor: CONFIGURATION.md#who-is-where"
guide 'Read `proxy/core/net/wire.c`, `net/wire` and `tests/e2e/test_*.py`.' ""
guide 'Read `proxy/core/net/fire.c`.' "no such file: proxy/core/net/fire.c"
guide 'Set `client.memory`.' ""
guide 'Set `client.memroy`.' "no such option: client.memroy"
guide 'See `memory_refused` and `retort_memory_refused_total`.' ""
guide 'See `memory_denied`.' "nothing in the sources has this name: memory_denied"
guide 'Call `retortctl cache purge` and `retortctl -s /run/it set name=1`.' ""
guide 'Call `retortctl purge`.' "retortctl has no such command: purge"
guide '    retortctl cache prune URL' "retortctl has no such command: cache prune"
guide 'See test_cache.test_hit.' ""
guide 'See test_cache.test_miss.' "no such test: test_cache.test_miss"

# counters ROW TEXT: what is said of docs/METRICS.md with this row.
counters() {
    tree
    mkdir -p docs proxy/core/net
    printf 'COUNTER(lost, TOTAL, "Lines that were lost.")\n' >proxy/core/net/counters.def
    printf '# Counters\n\n%s\n' "$1" >docs/METRICS.md
    expect docs "${2:+docs/METRICS.md:1: $2}"
}

counters '| `lost` | total | Lines that were lost. |' ""
counters '' "the row of the counter lost is missing or old"
counters '| `lost` | total | Lines. |' "the row of the counter lost is missing or old"
counters '| `lost` | total | Lines that were lost. |
| `found` | total | Lines that were found. |' "the row of the counter found is missing or old"

# writes FILE LINE TEXT: what is said when FILE has that line. Without a text it is allowed.
writes() {
    tree
    mkdir -p proxy/core/transaction/steps
    cat >proxy/core/transaction/transaction.h <<'END'
struct transaction {
    struct lookup lookup;
    struct chain *chain;
};
END
    printf '/* Written by lookup.c. */\nstruct lookup {\n    int alone;\n};\n' >proxy/core/transaction/steps/lookup.h
    printf '/* Written by chain.c and chains.c. */\nstruct chain {\n    int at;\n};\n' >proxy/core/transaction/chain.h
    printf 'void f(void) {\n    %s\n}\n' "$2" >"$1"
    expect writers "${3:+$1:2: $3}"
}

writes proxy/core/transaction/steps/lookup.c 'transaction->lookup.alone = 1;' ""
writes proxy/core/transaction/steps/fetch.c 'if (transaction->lookup.alone == 1)' ""
writes proxy/core/transaction/steps/fetch.c 'transaction->lookup.alone = 1;' "changes transaction->lookup"
writes proxy/core/transaction/steps/fetch.c 'object_release(&transaction->lookup.object);' "changes transaction->lookup"
writes proxy/core/transaction/steps/fetch.c 'transaction->chain->at++;' "changes transaction->chain"
writes proxy/core/transaction/steps/fetch.c 'struct chain *chain = transaction->chain;' "changes transaction->chain"
writes proxy/core/transaction/steps/fetch.c 'const struct chain *chain = transaction->chain;' ""
writes proxy/core/transaction/chains.c 'transaction->chain = NULL;' ""

# hook TEXT: what tests/hooks/pre-commit says of what is staged. Without a text it lets the commit pass. There is no build tree.
hook() {
    if said=$(cd "$scratch/tree" && RETORT_BUILDDIR=none "$here/hooks/pre-commit" 2>&1); then status=0; else status=1; fi
    case "$status:$1:$said" in
    0::*) passed=$((passed + 1)) ;;
    1:?*:*"${1:-nothing}"*) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "hooks/pre-commit should have said: ${1:-nothing}; it said: $said"
        ;;
    esac
}

tree
expect sources ""
: >proxy/core/net/dial.h
expect sources "proxy/core/net/dial.h: no local.mk names it"

if command -v git >/dev/null && command -v clang-format-14 >/dev/null; then
    tree
    cp "$here/../.clang-format" .
    ln -s "$here" tests
    mkdir -p proxy/core/transaction
    printf '/* A transaction. */\nstruct transaction {\n    struct chain *chain;\n};\n' >proxy/core/transaction/transaction.h
    printf '/* Written by chain.c. */\nstruct chain {\n    int at;\n};\n' >proxy/core/transaction/chain.h
    git init -q .
    git add common proxy .clang-format
    hook ""
    printf 'int  box( void );\n' >>common/base/box.c
    hook ""
    git add common/base/box.c
    hook "common/base/box.c: not as .clang-format says"
    printf '#include "net/dial.h"\n' >common/base/box.c
    mkdir -p proxy/core/net && : >proxy/core/net/dial.h
    git add common/base/box.c
    hook "leads out of common/"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
