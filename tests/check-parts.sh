#!/bin/bash
# Is retort a core and parts? Links it from the objects of this build without any part, and without each of them (and those that
# need it): a core that names a part does not link. Each such retort lists its parts, refuses the options of the part that it does
# not have, and the one without any serves a page, is steered by signals, and is as small as it should be. The unit tests of the
# one without any, and of the core with ICAP, are run. One check a retort and question, and a test of theirs.
# Usage: check-parts.sh, in a build directory, by make check.

top=$(cd "$(dirname "$0")/.." && pwd)
[ -f proxy/libproxy.a ] || { echo "no build directory: run make check"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; kill $proxy $origin 2>/dev/null' EXIT
passed=0
failed=0
proxy=
origin=

count() { # TRUTH TEXT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $2"; fi
}

sections="$top/proxy/core/settings/option_sections.c $(find "$top/proxy/parts" -name '*.c')"
rows=$(sed -nE 's/^PART\([A-Z0-9_]+, ([a-z0-9_]+), "([^"]*)".*/\1 \2/p' "$top/proxy/parts.def")
built=$(proxy/retort -V | sed -n 's/^parts: \(.*\); left out:.*/\1/p' | tr -d ,)

# without PART: those that are built, but for it and those that need it.
without() {
    local part
    for part in $built; do
        [ "$part" != "$1" ] && ! grep -qE "^$part( .*)? $1( |\$)" <<<"$rows" && echo "$part"
    done
}

# link WHAT NAME PARTS...: 0 when it links and lists them. With the NAME of what is tested further, also the unit tests.
link() {
    local what=$1 name=$2 listed only=
    shift 2
    [ "$name" != with ] || only=--no-unit
    "$top/tests/link-parts.sh" $only "$name" "$@" >"$scratch/link" 2>&1
    count $? "retort $what does not link: $(grep -m 3 'undefined reference' "$scratch/link")"
    retort=proxy/retort-$name
    listed=$($retort -V | sed -n 's/^parts: \(.*\); left out:.*/\1/p' | tr -d ,)
    [ "$listed" = "${*:-none}" ]
    count $? "retort $what says that it has: $listed"
}

# unit WHAT NAME: runs the unit tests of a retort.
unit() {
    local line tests bad status=0
    "tests/unit/proxy/unit-proxy-$2" >"$scratch/unit" 2>&1 || status=$?
    line=$(grep '^[0-9]*%: Checks:' "$scratch/unit")
    read -r tests bad <<<"$(sed -E 's/^[0-9]+%: Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+).*/\1 \2+\3/' <<<"$line")"
    echo "unit tests of retort $1: ${line:-none}; $(tail -1 "$scratch/unit" | grep -x '[0-9]* tests need .*')"
    passed=$((passed + ${tests:-0} - (${bad:-0})))
    failed=$((failed + (${bad:-1})))
    if [ "${tests:-0}" = 0 ] || { [ $status != 0 ] && [ $((bad)) = 0 ]; }; then
        failed=$((failed + 1))
        echo "FAIL the unit tests of retort $1 ended with status $status behind ${tests:-0} tests"
    fi
    grep -E '^[^ ]+:[0-9]+:[FE]:' "$scratch/unit" | sed 's/^/FAIL /'
}

# row_of SECTION, title_of SECTION: the row of the section, up to its title; x when it has one.
row_of() { grep -hxA2 " *\.name = \"$1\"," $sections; }
title_of() { row_of "$1" | sed -n 's/.*\.title = .*/x/p'; }

# refuses PART: is what only the part understands refused, with its name?
refuses() {
    local option section name line parent title
    for option in $(awk -v part="$1" -F '"' '
        $0 ~ "^PART\\([A-Z0-9_]+, " part "," { mine = 1; next } mine { print $2 } mine && /\)$/ { exit }' "$top/proxy/parts.def"); do
        section=${option%.*} name=${option#*.}
        if [ "$section" != "$option" ]; then
            [ "$section" = listen ] && title='"127.0.0.1:1"' || title=$(title_of "$section")
            [[ $name = *=* ]] && line=$name || line="$name = 1"
            echo "$section $title { $line }"
        elif row_of "$option" >/dev/null; then
            parent=$(row_of "$option" | sed -n 's/.*\.parent = "\(.*\)",/\1/p')
            line="$option $(title_of "$option") {}"
            [ -z "$parent" ] || line="$parent { $line }"
            echo "$line"
        else
            echo "$option = 1"
        fi >"$scratch/retort.conf"
        [ "$($retort -T -f "$scratch/retort.conf" 2>&1 | grep -c "$name: this retort was built without the part $1")" = 1 ]
        count $? "retort without $1 takes $option: $($retort -T -f "$scratch/retort.conf" 2>&1 | head -1)"
    done
}

# The libraries that only one part uses.
declare -A only_there=([admin]=libmicrohttpd [codings]="lib\(z\|brotlidec\|zstd\)\.so" [fleet]=libhiredis [disk]="lib\(uring\|xxhash\)"
    [identity]="lib\(gssapi_krb5\|krb5\|crypt\)\.so" [spans]=libcurl)
for part in $built; do
    link "without $part" with $(without "$part")
    if [ -n "${only_there[$part]}" ]; then
        ! readelf -d $retort | grep -q "NEEDED.*${only_there[$part]}"
        count $? "retort without $part needs ${only_there[$part]}"
    fi
    refuses "$part"
done


# What such a retort is made of: at most so many shared libraries that it asks for itself besides the C library, KB when it is
# stripped, and lines of the files that are compiled into it, with those of common/. Of a build by gcc -O2 alone.
made_of() { # WHAT LIBRARIES KB LINES
    local libraries size lines
    readelf --debug-dump=info --dwarf-depth=1 $retort >"$scratch/dwarf" 2>/dev/null
    if ! grep -q 'DW_AT_producer.*-O2' "$scratch/dwarf" || grep -q 'DW_AT_producer.*-fsanitize' "$scratch/dwarf"; then
        return
    fi
    libraries=$(readelf -d $retort | grep NEEDED | grep -vcE 'ld-linux|lib(c|m)\.so')
    strip -o "$scratch/stripped" $retort
    size=$(($(stat -c %s "$scratch/stripped") / 1024))
    lines=$(sed -n 's/.*DW_AT_name .*: \(.*\)\.c$/\1/p' "$scratch/dwarf" | while read -r unit; do
        unit=${unit#"$top/"} unit=${unit#../}
        cat "$(dirname "$unit")"/.deps/{*-,}"$(basename "$unit")".P*o 2>/dev/null
    done | tr ' ' '\n' | sed "s|^\.\./|$top/|" | grep -E "^$top/.*\.([ch]|def)$" | sort -u | xargs -r cat | wc -l)
    echo "retort $1: $libraries shared libraries, $size KB stripped, $lines lines"
    [ "$libraries" -le "$2" ] && [ "$size" -le "$3" ] && [ "$lines" -le "$4" ] && [ "$lines" -gt 0 ]
    count $? "retort $1 has become larger than $2 libraries, $3 KB and $4 lines: see what it links (ldd, readelf -d)"
}

if [[ " $built " == *" icap "* ]]; then
    link minimal minimal adapt icap
    unit minimal minimal
    made_of minimal 4 1060 71800
fi
link "without parts" none
unit "without parts" none
made_of "without parts" 4 880 59100
python3 - "$scratch" <<'END' &
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
pathlib.Path(sys.argv[1], "origin").write_text(str(server.server_port))
server.handle_request()
END
origin=$!
for _ in $(seq 100); do [ -s "$scratch/origin" ] && break; sleep 0.1; done
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$scratch/retort.conf" <<END
workers = 1
listen "127.0.0.1:$port" { mode = reverse }
map "/" { origin = "http://127.0.0.1:$(cat "$scratch/origin")" }
END
$retort -f "$scratch/retort.conf" 2>"$scratch/log" &
proxy=$!
answer=$(python3 - "$port" <<'END'
import http.client, sys, time
for _ in range(100):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
        connection.request("GET", "/")
        print(connection.getresponse().read().decode())
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
END
)
[ "$answer" = hello ]
count $? "retort without parts does not serve: $answer $(tail -3 "$scratch/log")"
says() { # TEXT: within five seconds
    for _ in $(seq 50); do grep -q "$1" "$scratch/log" && return; sleep 0.1; done
    false
}
kill -HUP "$proxy"
says "configuration read again"
count $? "retort without parts does not read its configuration again: $(tail -3 "$scratch/log")"
kill -USR1 "$proxy"
says "logs opened again"
count $? "retort without parts does not open its logs again: $(tail -3 "$scratch/log")"
kill "$proxy"
wait "$proxy"
count $? "retort without parts does not end well"
proxy=

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
