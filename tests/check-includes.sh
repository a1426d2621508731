#!/bin/sh
# Holds the order in which the rooms of the source tree may include each other. A room is a folder; each has a rank, and includes
# itself and rooms that have no higher one:
#
#   common/base <- common/event, common/http <- common/record, common/service <- common/runner
#     <- proxy/: tls <- net <- limits <- http2 <- match <- identity, log, rewrite <- record, settings <- cache, origin, spans <- disk <- client, intercept, takeover <- content
#        <- adapt, client/http1, client/http2
#     <- icap, inside <- transaction <- events <- worker, admin, main, ctl
#     <- icap-services/: adremover, gray, gzip, inject <- helpers, helperd, host-c-icap, service-test
#
#   - Rooms that stand apart never include one another, whatever their ranks: client/, origin/, icap/ and inside/, for example.
#   - A room of a protocol is closed: it is included by the files that are named below, and by no others.
#   - proxy/ never includes icap-services/, and icap-services/ never includes proxy/.
#   - Only icap-services/host-c-icap includes headers of c-icap.
#   - A folder that has no rank below is an error, so that a new room gets its place.
#
# Prints each include that breaks a rule as FILE:LINE: RULE. One check a source file.
# Usage: check-includes.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1

find common proxy icap-services -type f \( -name '*.[ch]' -o -name '*.def' \) | LC_ALL=C sort |
LC_ALL=C awk '
BEGIN {
    rooms(0, "common/base")
    rooms(1, "common/event common/http")
    rooms(2, "common/record common/service")
    rooms(2.3, "common/runner")
    rooms(2.5, "proxy/tls")
    rooms(3, "proxy/net")
    rooms(3.5, "proxy/limits")
    rooms(3.7, "proxy/http2")
    rooms(4, "proxy/match")
    rooms(4.5, "proxy/identity proxy/log proxy/rewrite")
    rooms(5, "proxy/record proxy/settings")
    rooms(6, "proxy/cache proxy/origin proxy/spans")
    rooms(6.5, "proxy/origin/http1 proxy/origin/http2")
    rooms(7, "proxy/disk")
    rooms(8, "proxy/access proxy/client proxy/intercept")
    rooms(8.5, "proxy/content")
    rooms(9, "proxy/adapt proxy/client/http1 proxy/client/http2")
    rooms(9.5, "proxy/icap proxy/inside")
    rooms(10, "proxy/transaction proxy/transaction/steps")
    rooms(8, "proxy/takeover")
    rooms(10.5, "proxy/events")
    rooms(11, "proxy/admin")
    rooms(12, "proxy proxy/ctl")
    rooms(3, "icap-services/adremover icap-services/gray icap-services/gzip icap-services/inject")
    rooms(4, "icap-services/helpers icap-services/helperd icap-services/host-c-icap icap-services/service-test")

    stand_apart("common/event common/http")
    stand_apart("common/record common/service")
    stand_apart("proxy/record proxy/settings")
    stand_apart("proxy/cache proxy/origin proxy/spans")
    stand_apart("proxy/disk proxy/client proxy/origin proxy/icap proxy/inside")
    stand_apart("proxy/disk proxy/adapt")
    stand_apart("proxy/access proxy/client")
    stand_apart("icap-services/adremover icap-services/gray icap-services/gzip icap-services/inject")
    stand_apart("icap-services/helpers icap-services/helperd icap-services/host-c-icap icap-services/service-test")

    stand_apart("proxy/client/http1 proxy/client/http2")
    closed("proxy/client/http1", "proxy/worker.c")
    closed("proxy/client/http2", "proxy/worker.c")
    closed("proxy/origin/http1", "proxy/worker.c")
    closed("proxy/origin/http2", "proxy/worker.c")
    stand_apart("proxy/origin/http1 proxy/origin/http2")
    closed("proxy/icap", "proxy/adapters.c proxy/ctl/icap_replay.c")
    closed("proxy/inside", "proxy/adapters.c")

    # The headers that c-icap installs, which its own flags let one include by their bare names.
    count = split("access acl array body c-icap-conf c-icap cache cfg_param ci_regex ci_threads " \
        "commands debug dlib filetype hash header log lookup_table md5 mem module net_io " \
        "net_io_ssl port proc_mutex proc_threads_queues registry request service shared_mem " \
        "simple_api stats txtTemplate txt_format types_ops util", names, " ")
    for (i = 1; i <= count; i++)
        c_icap[names[i] ".h"] = 1
}

{ exists[$0] = 1; files[++file_count] = $0 }

function rooms(height, names,   list, n, i) {
    n = split(names, list, " ")
    for (i = 1; i <= n; i++)
        rank[list[i]] = height
}

function stand_apart(names,   list, n, i, k) {
    n = split(names, list, " ")
    for (i = 1; i <= n; i++)
        for (k = 1; k <= n; k++)
            if (i != k)
                apart[list[i], list[k]] = 1
}

# doors: the files that may include the room, and folders with a slash at the end.
function closed(room, doors) {
    closed_rooms[room] = doors
}

# Is the file one of the doors of the room?
function is_door(file, room,   list, n, i) {
    n = split(closed_rooms[room], list, " ")
    for (i = 1; i <= n; i++)
        if (file == list[i] || (list[i] ~ /\/$/ && index(file, list[i]) == 1))
            return 1
    return 0
}

# The group of rooms that stands apart from others is that of a folder and of all folders in it.
function are_apart(from, to,   pair, ends) {
    for (pair in apart) {
        split(pair, ends, SUBSEP)
        if (index(from "/", ends[1] "/") == 1 && index(to "/", ends[2] "/") == 1)
            return 1
    }
    return 0
}

function directory_of(path) {
    sub("/[^/]*$", "", path)
    return path
}

# Where an include leads: a path in the tree, "" when out of it. A header that is not written yet
# belongs to the folder that its name begins with.
function resolve(file, name,   roots, n, i, path, first) {
    path = directory_of(file) "/" name
    if (path in exists)
        return path
    n = split("common proxy icap-services", roots, " ")
    for (i = 1; i <= n; i++)
        if ((roots[i] "/" name) in exists)
            return roots[i] "/" name
    if (split(name, first, "/") > 1)
        for (i = 1; i <= n; i++)
            if (("dir " roots[i] "/" first[1]) in exists || (roots[i] "/" first[1]) in rank)
                return roots[i] "/" name
    return ""
}

# The rule that an include breaks, "" when it breaks none.
function broken(file, name, quoted,   from, to, target) {
    from = directory_of(file)
    if (quoted && name ~ /(^|\/)\.\.?\//)
        return "names a path with dots; write it from the root of the include path"
    target = quoted ? resolve(file, name) : ""
    if (target == "") {
        if ((name ~ /^c_icap\// || name in c_icap) && from != "icap-services/host-c-icap")
            return "is of c-icap, which only icap-services/host-c-icap may include"
        return ""
    }
    to = directory_of(target)
    if (from ~ /^common/ && to !~ /^common/)
        return "leads out of common/, which includes nothing but itself"
    if (from ~ /^icap-services/ && to ~ /^proxy/)
        return "leads to proxy/, which icap-services/ never includes"
    if (from ~ /^proxy/ && to ~ /^icap-services/)
        return "leads to icap-services/, which proxy/ never includes"
    if (to == from)
        return ""
    if (!(to in rank))
        return "leads to " to "/, which has no rank; give it one in tests/check-includes.sh"
    if (are_apart(from, to))
        return "goes sideways: " from "/ and " to "/ never include one another"
    if (rank[to] > rank[from])
        return "goes up: " from "/ may not include " to "/"
    if (to in closed_rooms && !is_door(file, to))
        return "leads into " to "/, which is closed to this file"
    return ""
}

function check(file,   line, number, name, rule, good) {
    good = directory_of(file) in rank
    if (!good)
        printf "%s:1: stands in %s/, which has no rank; give it one in tests/check-includes.sh\n", file, directory_of(file)
    number = 0
    while ((getline line < file) > 0) {
        number++
        if (line !~ /^[ \t]*#[ \t]*include[ \t]*["<]/)
            continue
        name = line
        sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", name)
        sub(/[">].*$/, "", name)
        rule = broken(file, name, line ~ /^[^<]*"/)
        if (rule != "") {
            printf "%s:%d: \"%s\" %s\n", file, number, name, rule
            good = 0
        }
    }
    close(file)
    return good
}

END {
    for (i = 1; i <= file_count; i++)
        exists["dir " directory_of(files[i])] = 1
    for (i = 1; i <= file_count; i++)
        if (check(files[i]))
            passed++
        else
            failed++
    printf "%d passed, %d failed\n", passed, failed
    exit failed > 0 || passed == 0
}'
