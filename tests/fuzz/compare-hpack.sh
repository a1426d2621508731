#!/bin/sh
# What make check runs: compare-hpack on the corpus of the source tree.
exec tests/fuzz/compare-hpack "${srcdir:-.}/tests/fuzz/corpus/hpack"
