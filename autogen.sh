#!/bin/sh
# Makes ./configure from configure.ac. Run it once after cloning.
set -e
cd "$(dirname "$0")"
mkdir -p m4
exec autoreconf --install --force --warnings=all,no-obsolete
