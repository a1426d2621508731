#!/bin/sh
# What make check runs: compare-heads on the corpora of the source tree.
source_tree=${srcdir:-.}
exec tests/fuzz/compare-heads "$source_tree/tests/fuzz/corpus" "$source_tree/docs/TESTING.md"
