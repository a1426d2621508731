#!/bin/bash
# Builds the Debian packages as a packager does: of the archive that "make dist" makes, and debian/.
#
# Usage: tests/package/build.sh BUILDDIR [DIRECTORY]
#
# BUILDDIR is a configured build tree. Source and binary packages are in DIRECTORY (BUILDDIR/package)
# then, with the log of each step. A second call does nothing when neither the archive nor debian/ has changed.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
builddir=$(cd "${1:?usage: build.sh BUILDDIR [DIRECTORY]}" && pwd)
mkdir -p "${2:-$builddir/package}"
out=$(cd "${2:-$builddir/package}" && pwd)

complain() {
    echo "build.sh: $1; the end of $2:"
    tail -n 25 "$2"
    exit 1
}

version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
tree=retort-${version%-*}

make -C "$builddir" dist XZ_OPT=-1 >"$out/dist.log" 2>&1 || complain "make dist has failed" "$out/dist.log"
archive=$builddir/$tree.tar.xz
[ -e "$archive" ] || complain "debian/changelog says ${version%-*}, and configure.ac another version" "$out/dist.log"
sum=$({ tar -xJOf "$archive"; tar -C "$top" --sort=name --mtime=@0 -cf - debian; } | sha256sum)
if [ -e "$out/built" ] && [ "$(cat "$out/built")" = "$sum" ]; then
    rm "$archive"
    exit 0
fi
rm -rf "$out/$tree" "$out"/*.deb "$out"/*.changes "$out/built"
mv "$archive" "$out/retort_${version%-*}.orig.tar.xz"
tar -C "$out" -xJf "$out/retort_${version%-*}.orig.tar.xz"
cp -r "$top/debian" "$out/$tree/"

# Unit tests are run by others, and who debugs builds with symbols.
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS:-"nocheck noautodbgsym parallel=$(nproc)"}
(cd "$out/$tree" && dpkg-buildpackage -us -uc) >"$out/build.log" 2>&1 || complain "dpkg-buildpackage has failed" "$out/build.log"
rm -rf "${out:?}/$tree"
echo "$sum" >"$out/built"
