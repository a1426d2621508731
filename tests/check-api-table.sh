#!/bin/sh
# Holds the tables of docs/API.md to the paper and to the sources: each event and each function of the paper has a row, and each
# function of ours that a row names is called in one of the row's examples.
# Usage: check-api-table.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
export LC_ALL=C
passed=0
failed=0

count() { # TRUTH TEXT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "docs/API.md: $2"; fi
}

# Figure 2, and Tables 1 to 3.
for name in dfp_init dfp_reconfig dfp_fini dfp_reqHeader dfp_reqBody dfp_reqOut dfp_dnsResolv dfp_respHeader dfp_respBody \
    dfp_respReturn dfp_logging dfp_opaqueFree dfp_timer dfp_timerFreq \
    DR_HeaderDelete DR_HeaderFind DR_HeaderAdd DR_HeaderDone DR_RespBodyInject \
    DR_ObjIDMake DR_ObjIDRef DR_ObjIDUnref DR_ObjQuery DR_ObjFetch DR_ObjValidate DR_ObjExpirationSet DR_ObjDelete DR_ObjInject \
    DR_ObjInjectStart DR_ObjInjectBody DR_ObjInjectDone DR_ObjRead DR_ObjReadStart DR_ObjReadPart DR_ObjReadDone \
    DR_FDPollReadNotify DR_FDPollReadClear DR_FDPollWriteNotify DR_FDPollWriteClear DR_FDPollClose \
    DR_StringFromStatus DR_StringFromLogCode DR_StringFromLogTimeout DR_StringFromLogHier DR_ConfigOptionFind; do
    grep -qE "^\|[^|]*\b$name\b[^|]*\|" docs/API.md
    count $? "$name has no row"
done

# LINE FUNCTION EXAMPLES: of each row with an example. A name in backticks is a function, or a member of an exchange.
rows=$(awk -F'|' '
/^\|/ && NF >= 6 {
    examples = functions = ""
    count = split($4, parts, "`")
    for (i = 2; i <= count; i += 2)
        examples = examples " " parts[i]
    count = split($3, parts, "`")
    for (i = 2; i <= count && examples != ""; i += 2)
        if (parts[i] ~ /^(exchange->|(http_head|adapted_head|service|helper)_)[a-z_]+$/)
            print FNR, substr(parts[i], index(parts[i], ">") + 1) examples
}' docs/API.md)
while read -r line name examples; do
    # shellcheck disable=SC2086
    grep -qsE "\b$name\b" $examples
    count $? "$line: $name is in none of the examples of the row: $examples"
done <<END
$rows
END
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 60 ]
