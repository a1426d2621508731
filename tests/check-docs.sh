#!/bin/sh
# Checks the guides: README.md, docs/*.md, the other *.md files at the top, and those of the examples.
#
#   - A line has at most 120 columns. Tables, code, lines with a long link and what programs wrote are free.
#   - A relative link points to a file, and its anchor to a heading of that file.
#   - A path in `backticks` exists. It may begin at the top or in a folder that is listed below.
#   - An option in `backticks`, such as `client.memory`, is in docs/CONFIGURATION.md.
#   - A name in `backticks` with an underscore, such as a metric, occurs somewhere in the sources.
#   - A test that is named as test_FILE.test_NAME exists in tests/e2e.
#   - A command of retortctl, in `backticks` or in code, is in proxy/parts/admin/calls.def.
#   - docs/METRICS.md has the row of each counter, and no other row.
#
# Prints each mistake as FILE:LINE: TEXT. Usage: check-docs.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
here=$(cd "$(dirname "$0")" && pwd)
cd "$top" || exit 1
export LC_ALL=C

guides=$(ls ./*.md docs/*.md docs/adr/*.md examples/*.md examples/*/*.md 2>/dev/null | sed 's|^\./||')
# The folders that a path may begin in, beside the top.
folders=". proxy proxy/core proxy/parts proxy/core/transaction common icap-services tests tests/e2e tests/unit tests/bench docs examples conf"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# What the guides say, one item a line: KIND FILE LINE TEXT. Kinds: long, link, code, heading, command.
# shellcheck disable=SC2086
awk '
function item(kind, text) { print kind "\t" FILENAME "\t" FNR "\t" text }

# The anchor that GitHub makes of a heading.
function anchor(heading) {
    heading = tolower(heading)
    gsub(/[^a-z0-9 _\200-\377-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}

# The command of retortctl in a text that begins behind that word: one or two words, without options.
function command(text,    words, count, i, found) {
    count = split(text, words, /[ \t]+/)
    for (i = 1; i <= count && split(found, parts, " ") < 2; i++)
        if (words[i] ~ /^(-s|-H|--address|--socket|--token-file|--ca)$/)
            i++
        else if (words[i] ~ /^[a-z]+$/)
            found = found (found == "" ? "" : " ") words[i]
        else if (words[i] != "" && words[i] !~ /^-/)
            break
    if (found != "")
        item("command", found)
}

function columns(line) { gsub(/[\200-\277]/, "", line); return length(line) }

FNR == 1 { fenced = measured = 0 }
/^<!-- measured: begin/ { measured = 1 }
/^<!-- measured: end/ { measured = 0 }
# The first column of a table "| another program | Retort |" has names of the other program.
!/^ *\|/ { in_others = 0 }
/^\|.*\| Retort \|$/ { in_others = 1 }
/^```/ { fenced = !fenced; next }
(fenced || /^    /) && match($0, /(^|[ \/])retortctl [^#|]*/) {
    rest = substr($0, RSTART, RLENGTH)
    sub(/^.?retortctl /, "", rest)
    sub(/   .*/, "", rest) # what is said beside it
    command(rest)
}
fenced || /^    / { next }
/^#/ { heading = $0; sub(/^#+ */, "", heading); item("heading", anchor(heading)) }
columns($0) > 120 && !/^ *\|/ && !/[^ ]{80}/ && !measured && FILENAME != "docs/CONFIGURATION.md" { item("long", substr($0, 1, 60) "...") }
{
    rest = $0
    while (match(rest, /\]\([^) ]*\)/)) {
        item("link", substr(rest, RSTART + 2, RLENGTH - 3))
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = in_others ? substr($0, index(substr($0, 2), "|") + 1) : $0
    while (match(rest, /`[^`]+`/)) {
        item("code", substr(rest, RSTART + 1, RLENGTH - 2))
        if (substr(rest, RSTART, 11) == "`retortctl ")
            command(substr(rest, RSTART + 11, RLENGTH - 12))
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /test_[a-z_0-9]+\.test_[a-z_0-9]+/)) {
        item("test", substr(rest, RSTART, RLENGTH))
        rest = substr(rest, RSTART + RLENGTH)
    }
}' $guides | awk -F '\t' '$1 == "long" || $1 == "heading" || !seen[$1 $4 ($1 == "link" ? $2 : "")]++' >"$work/items"

# Each word of the sources, for names in backticks.
find proxy common icap-services conf examples tests configure.ac Makefile.am -type f \
    ! -name '*.md' ! -path '*/corpus/*' ! -path 'tests/data/*' -exec grep -IhoE '[A-Za-z_][A-Za-z0-9_]*' {} + 2>/dev/null |
    sort -u >"$work/words"
sed -n 's/^### //p' docs/CONFIGURATION.md | sort -u >"$work/options"
grep -ohE '\.name = "[^"]+"' proxy/parts/admin/calls.def 2>/dev/null | sed 's/.*"\(.*\)"/\1/' >"$work/commands"

# A group such as "ca" or "adlist" stands in the table, but is none without its second word; other commands may have arguments.
command_exists() {
    grep -qx -- "$1" "$work/commands" || { grep -qx -- "${1%% *}" "$work/commands" && ! grep -q "^${1%% *} " "$work/commands"; }
}

# A path may hold a star, NAME for any name, and lack the ending of a C file.
path_exists() {
    pattern=$(printf %s "$1" | sed 's/NAME/*/g')
    for folder in $folders; do
        for path in $folder/$pattern $folder/$pattern.[ch]; do
            [ -e "$path" ] && return 0
        done
    done
    return 1
}

name_exists() {
    grep -qx -- "$1" "$work/words" && return 0
    name=${1#retort_}
    name=${name%_total}
    grep -qx -- "$name" "$work/words" && return 0
    grep -qx -- "${name#icap_service_}" "$work/words" || grep -qx -- "${name#service_}" "$work/words" ||
        grep -qx -- "${name#icap_server_}" "$work/words" || grep -qx -- "${name%_bytes}" "$work/words"
}

tab=$(printf '\t')
while IFS=$tab read -r kind file line text; do
    case $kind in
    long)
        echo "$file:$line: longer than 120 columns: $text" ;;
    link)
        case $text in *://* | mailto:*) continue ;; esac
        target=${text%%#*}
        case $target in
        '') target=$file ;;
        *) target=$(dirname "$file")/$target; target=${target#./} ;;
        esac
        if [ ! -e "$target" ]; then
            echo "$file:$line: the link points to nothing: $text"
        else
            case $text in
            *#*)
                target=$(printf %s "$target" | sed ':a; s|[^/.][^/]*/\.\./||; ta')
                grep -q "^heading$tab$target${tab}[0-9]*$tab${text#*#}\$" "$work/items" ||
                    echo "$file:$line: no heading has this anchor: $text" ;;
            esac
        fi ;;
    command)
        command_exists "$text" || echo "$file:$line: retortctl has no such command: $text" ;;
    test)
        grep -q "^def ${text#*.}(" "tests/e2e/${text%%.*}.py" 2>/dev/null ||
            echo "$file:$line: no such test: $text" ;;
    code)
        if printf %s "$text" | grep -qE '^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.*-]+)+/?$' &&
            printf %s "$text" | grep -qE '\.(c|h|def|py|sh|md|am|ac|mk|in|txt|json)$|^(proxy|common|icap-services|tests|docs|conf|examples)/'
        then
            path_exists "$text" || echo "$file:$line: no such file: $text"
        elif printf %s "$text" |
            grep -qE '^(listen|map|origins|parent|cache|cache\.disk|client|origin|access_log|icap_service|url_class|adapt|policy|admin)\.[a-z_]+$'
        then
            grep -qx "$text" "$work/options" || echo "$file:$line: no such option: $text"
        elif printf %s "$text" | grep -qE '^[a-z]+(_[a-z0-9]+)+$'; then
            name_exists "$text" || echo "$file:$line: nothing in the sources has this name: $text"
        fi ;;
    esac
done <"$work/items" | sort -t: -k1,1 -k2,2n >"$work/mistakes"

# Each counter has its row.
touch "$work/rows"
sh "$here/../docs/write-metrics.sh" --rows . | sort >"$work/counters"
[ -f docs/METRICS.md ] && grep '^| `' docs/METRICS.md | sort >"$work/rows"
comm -3 "$work/counters" "$work/rows" | sed 's/^\t//; s/^| `\([a-z0-9_]*\)`.*/\1/' | sort -u |
    sed 's|.*|docs/METRICS.md:1: the row of the counter & is missing or old: run make docs|' >>"$work/mistakes"

cat "$work/mistakes"
failed=$(wc -l <"$work/mistakes")
checked=$(($(grep -cv '^heading' "$work/items") + $(wc -l <"$work/counters")))
echo "$((checked - failed)) passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$checked" -gt 0 ]
