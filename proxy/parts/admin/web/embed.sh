#!/bin/sh
# Writes the table of web_files.h to stdout: the files of a folder as arrays of bytes. The same files give the same text.
# Usage: embed.sh FOLDER NAME...
set -eu
folder=$1
shift

type_of() {
    case $1 in
    *.html) echo "text/html; charset=utf-8" ;;
    *.css) echo "text/css; charset=utf-8" ;;
    *.js) echo "text/javascript; charset=utf-8" ;;
    *.svg) echo "image/svg+xml" ;;
    *) echo "embed.sh: $1: the type of such files is not known" >&2; exit 1 ;;
    esac
}

# index.html is the page itself; everything else stands below /page/.
path_of() {
    if [ "$1" = index.html ]; then echo /; else echo "/page/$1"; fi
}

echo '/* Written by admin/web/embed.sh. */'
echo '#include "admin/web_files.h"'
count=0
for name in "$@"; do
    echo "static const unsigned char file_$count[] = {"
    od -An -v -tu1 "$folder/$name" | sed 's/  */,/g; s/^,//; s/$/,/'
    echo '};'
    count=$((count + 1))
done
echo 'const struct web_file web_table[] = {'
count=0
for name in "$@"; do
    sum=$(cksum < "$folder/$name" | tr ' ' '-')
    echo "    {\"$(path_of "$name")\", \"$(type_of "$name")\", \"\\\"$sum\\\"\", file_$count, sizeof file_$count},"
    count=$((count + 1))
done
echo '    {NULL, NULL, NULL, NULL, 0},'
echo '};'
