#!/bin/sh
# Prints docs/METRICS.md from the tables of counters and bounds. Usage: write-metrics.sh [--rows] [TOP-OF-THE-TREE]
#
# --rows: the rows of the table alone, which tests/check-docs.sh compares.

rows=false
[ "$1" = --rows ] && { rows=true; shift; }
cd "${1:-$(dirname "$0")/..}" || exit 1

$rows || cat <<'END'
# Counters

This page is printed from `proxy/core/net/counters.def` by `make docs`.

`retortctl status` shows each counter by its name. In `/metrics` the name begins with `retort_`, and that of a counter
that only grows ends with `_total`. A gauge goes up and down. [OPERATIONS.md](OPERATIONS.md#metrics) says which of them
are worth an alarm, and what to do.

| counter | kind | what it counts |
|---|---|---|
END
find proxy -name counters.def -exec sed -n -e 's/|/\\|/g' \
    -e 's/^COUNTER(\([a-z0-9_]*\), TOTAL, "\(.*\)")$/| `\1` | total | \2 |/p' \
    -e 's/^COUNTER(\([a-z0-9_]*\), GAUGE, "\(.*\)")$/| `\1` | gauge | \2 |/p' {} +

$rows && exit
cat <<'END'

# Limits

This table is printed from `proxy/parts/admin/bounds.def`. It has every option that is a number, a size or a timeout,
and the metric that counts what the option refuses, breaks off, or makes room for. `retort_bound_reached_total` has
those that are marked in one metric, by option. A unit test compares the table with the options.

| option | metric | in `retort_bound_reached_total` |
|---|---|---|
END
sed -n -e 's/^REFUSES("\(.*\)", \(.*\))$/| \1 | `retort_\2_total` | yes |/p' \
    -e 's/^COUNTED("\(.*\)", "\(.*\)")$/| \1 | `retort_\2` | |/p' \
    -e 's/^UNCOUNTED("\(.*\)", "\(.*\)")$/| \1 | none: \2 | |/p' proxy/parts/admin/bounds.def
