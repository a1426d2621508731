#!/bin/sh
# Holds the order in which the rooms of the source tree may include each other. A room is a folder; each has a rank, and includes
# itself and rooms that have no higher one:
#
#   common/base <- common/event, common/http <- common/config, common/record, common/service <- common/runner
#     <- proxy/: tls <- secrets, net <- match <- log, text <- settings <- cache, origin <- client
#        <- client/http1
#     <- transaction <- worker, admin, main, ctl <- parts/*
#     <- icap-services/: adremover, gray, gzip, inject <- helpers, helperd, host-c-icap, service-test
#
#   - Rooms that stand apart never include one another, whatever their ranks: client/, origin/ and icap/, for example.
#   - A part, which is a folder of proxy/parts, is included by itself and by the parts whose row in proxy/parts.def names it; by
#     nothing else. But the files pages.c and *_page.[ch] of a part include the part admin, since they are built only with it.
#   - A room of a protocol is closed: it is included by the files that are named below, and by no others.
#   - proxy/ never includes icap-services/, and icap-services/ never includes proxy/.
#   - Only icap-services/host-c-icap includes headers of c-icap.
#   - A folder that has no rank below is an error, so that a new room gets its place.
#
# Some functions have callers that are named below, and no others: those that remove from one level of the cache alone.
#
# Prints each include and call that breaks a rule as FILE:LINE: RULE. One check a source file.
# Usage: check-includes.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1

find common proxy icap-services -type f \( -name '*.[ch]' -o -name '*.def' \) | LC_ALL=C sort |
LC_ALL=C awk '
BEGIN {
    rooms(0, "common/base")
    rooms(1, "common/event common/http")
    rooms(2, "common/config common/record common/service")
    rooms(2.3, "common/runner")
    rooms(2.5, "proxy/core/tls")
    rooms(2.6, "proxy/core/secrets")
    rooms(3, "proxy/core/net")
    rooms(4, "proxy/core/match")
    rooms(4.5, "proxy/core/log proxy/core/text")
    rooms(5, "proxy/core/settings")
    rooms(6, "proxy/core/cache proxy/core/origin")
    rooms(6.5, "proxy/core/origin/http1")
    rooms(8, "proxy/core/client")
    rooms(9, "proxy/core/client/http1")
    rooms(10, "proxy/core/transaction proxy/core/transaction/steps")
    rooms(13, "proxy/parts")
    rooms(2.4, "proxy/core/part.h proxy/parts.def") # what everybody may know of a part
    read_parts("proxy/parts.def")
    rooms(12, "proxy proxy/core")
    rooms(14, "proxy/tools") # the client of the part admin
    needs["proxy/tools"] = " admin "
    rooms(3, "icap-services/adremover icap-services/gray icap-services/gzip icap-services/inject")
    rooms(4, "icap-services/helpers icap-services/helperd icap-services/host-c-icap icap-services/service-test")

    stand_apart("common/event common/http")
    stand_apart("common/config common/record common/service")
    stand_apart("proxy/core/cache proxy/core/origin")
    stand_apart("proxy/core/client proxy/core/origin")
    stand_apart("proxy/parts/icap proxy/core/origin")
    stand_apart("proxy/parts/icap proxy/core/client")
    stand_apart("icap-services/adremover icap-services/gray icap-services/gzip icap-services/inject")
    stand_apart("icap-services/helpers icap-services/helperd icap-services/host-c-icap icap-services/service-test")

    closed("proxy/core/client/http1", "proxy/core/worker.c")
    closed("proxy/core/origin/http1", "proxy/core/worker.c")
    opened_to("proxy/parts/icap", "proxy/tools/icap_replay.c")

    # Removals from memory and from the second level go through the door, which knows their order.
    called_by("cache_remove_name cache_drop cache_ban cache_change_purge cache_change_purge_soon second_level_leave_out " \
        "second_level_remove second_level_remove_surely second_level_purge", "proxy/core/cache/removal.c")
    called_by("second_level_forget", "proxy/core/cache/stored.c")
    called_by("cache_remove cache_remove_all", "proxy/core/cache/store.c proxy/core/cache/removal.c proxy/parts/disk/")

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

# callers: as doors.
function called_by(functions, callers,   list, n, i) {
    n = split(functions, list, " ")
    for (i = 1; i <= n; i++) {
        callers_of[list[i]] = callers
        watched = watched (watched == "" ? "" : "|") list[i]
    }
}

# The function whose call in this line breaks a rule, "" when there is none. Lines of declarations are not indented.
function wrong_call(file, line,   name) {
    if (line !~ /^ / || line ~ /^ \*/ || !match(line, "[^a-z_](" watched ")\\("))
        return ""
    name = substr(line, RSTART + 1, RLENGTH - 2)
    return file !~ /^proxy/ || is_one_of(file, callers_of[name]) ? "" : name
}

# files: those that may include the part, though they are of none.
function opened_to(part, files) {
    closed_rooms[part] = files
}

# Is the file one of the doors of the room?
function is_door(file, room) {
    return is_one_of(file, closed_rooms[room])
}

function is_one_of(file, names,   list, n, i) {
    n = split(names, list, " ")
    for (i = 1; i <= n; i++)
        if (file == list[i] || (list[i] ~ /\/$/ && index(file, list[i]) == 1))
            return 1
    return 0
}

# A part is a folder of proxy/parts. It includes all that is no part, and the parts that its row names.
function read_parts(file,   line, words) {
    while ((getline line < file) > 0)
        if (split(line, words, /[(,"] */) > 4 && words[1] == "PART") {
            rank["proxy/parts/" words[3]] = 13
            needs["proxy/parts/" words[3]] = " " words[5] " "
        }
    close(file)
}

function is_part(directory) {
    return directory ~ /^proxy\/(parts\/|tools$)/
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

# The folders of a part are one room.
function directory_of(path) {
    sub("/[^/]*$", "", path)
    if (match(path, "^proxy/parts/[^/]*"))
        return substr(path, 1, RLENGTH)
    return path
}

# Where an include leads: a path in the tree, "" when out of it. A header that is not written yet
# belongs to the folder that its name begins with.
function resolve(file, name,   roots, n, i, path, first) {
    path = directory_of(file) "/" name
    if (path in exists)
        return path
    n = split("common proxy proxy/core proxy/parts icap-services", roots, " ")
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
    to = target in rank ? target : directory_of(target)
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
    if (is_part(to) && to in closed_rooms && is_door(file, to))
        return ""
    if (is_part(to) && !is_part(from))
        return "leads into the part " substr(to, length("proxy/parts/") + 1) ", and the core includes no part"
    if (to == "proxy/parts/admin" && file ~ /^proxy\/parts\/.*(\/pages\.c|_page\.[ch])$/)
        return ""
    if (is_part(to) && index(needs[from], " " substr(to, length("proxy/parts/") + 1) " ") == 0)
        return "leads into the part " substr(to, length("proxy/parts/") + 1) ", which the row of this part in proxy/parts.def does not name"
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
        name = wrong_call(file, line)
        if (name != "") {
            printf "%s:%d: calls %s, which only %s may call\n", file, number, name, callers_of[name]
            good = 0
        }
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
