#!/bin/sh
# Builds the guides as pages for a browser, with mkdocs and its theme material (Debian's packages
# mkdocs and mkdocs-material), and checks all links within them.
#
# Usage: build-site.sh DIRECTORY
#
# The pages are in DIRECTORY/html then, index.html first; what was there before is replaced.
set -eu

directory=${1:?usage: build-site.sh DIRECTORY}
top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
rm -rf "$directory/pages" "$directory/html"

# As the guides stand in the tree; and the files that they link to.
for guide in "$top"/*.md "$top"/docs/*.md "$top"/docs/adr/*.md "$top"/examples/README.md "$top"/examples/*/README.md; do
    place=$directory/pages/${guide#"$top/"}
    mkdir -p "$(dirname "$place")"
    cp "$guide" "$place"
    grep -o '](\([^)#: ]*\)[)#]' "$guide" | sed 's/^](//; s/.$//' | while read -r linked; do
        file=$(realpath -m --relative-to="$top" "$(dirname "$guide")/$linked")
        [ -f "$top/$file" ] || continue # mkdocs tells what is missing
        mkdir -p "$directory/pages/$(dirname "$file")"
        cp "$top/$file" "$directory/pages/$file"
    done
done
cp -r "$top/docs/plots" "$directory/pages/docs/"
cp "$top/docs/site/mkdocs.yml" "$directory/"
# The test of the page leaves newer pictures beside DIRECTORY than the tree has.
for picture in "$directory"/pages/docs/pictures/*.png; do
    newest=$directory/../page/$(basename "$picture")
    [ ! -f "$newest" ] || cp "$newest" "$picture"
done

# Debian's mkdocs belongs to Debian's Python, whatever stands in front of it in PATH.
/usr/bin/python3 /usr/bin/mkdocs build --strict --config-file "$directory/mkdocs.yml" --site-dir "$directory/html" \
    >"$directory/mkdocs.log" 2>&1 || { cat "$directory/mkdocs.log"; exit 1; }
rm -rf "$directory/pages" "$directory/mkdocs.yml"
/usr/bin/python3 "$top/docs/site/check_links.py" "$directory/html"
