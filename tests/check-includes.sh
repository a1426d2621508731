#!/bin/sh
# Holds the order in which the folders of the source tree may include each other:
#
#   common/base <- common/event, common/http <- common/service
#     <- proxy/: net, cache, settings <- disk <- client, origin, icap <- adapt <- transaction
#     <- worker, admin, main, ctl
#   client/, origin/ and icap/ never include one another; icap-services/ includes common/ and
#   itself; only icap-services/host-c-icap includes headers of c-icap.
#
# Prints each include that goes against it as FILE:LINE: RULE. One check a source file.
# Usage: check-includes.sh [TOP-OF-THE-TREE]

top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1

find common proxy icap-services -type f \( -name '*.[ch]' -o -name '*.def' \) | LC_ALL=C sort |
LC_ALL=C awk '
BEGIN {
    rank["common/base"] = 0
    rank["common/event"] = rank["common/http"] = 1
    rank["common/service"] = 2
    rank["proxy/net"] = rank["proxy/cache"] = rank["proxy/settings"] = 3
    rank["proxy/match"] = rank["proxy/record"] = 3
    rank["proxy/disk"] = 3.5
    rank["proxy/client"] = rank["proxy/origin"] = 4
    rank["proxy/adapt"] = rank["proxy/icap"] = 5
    rank["proxy/transaction"] = 6
    rank["proxy/admin"] = rank["proxy/ctl"] = rank["proxy"] = 7
    apart["proxy/client"] = apart["proxy/origin"] = 1
    apart["common/event"] = apart["common/http"] = 1

    # The headers that c-icap installs, which its own flags let one include by their bare names.
    count = split("access acl array body c-icap-conf c-icap cache cfg_param ci_regex ci_threads " \
        "commands debug dlib filetype hash header log lookup_table md5 mem module net_io " \
        "net_io_ssl port proc_mutex proc_threads_queues registry request service shared_mem " \
        "simple_api stats txtTemplate txt_format types_ops util", names, " ")
    for (i = 1; i <= count; i++)
        c_icap[names[i] ".h"] = 1
}

{ exists[$0] = 1; files[++file_count] = $0 }

# The folder that a file is of: two levels, or "proxy" for what stands directly in there.
function folder_of(path,   parts, n) {
    n = split(path, parts, "/")
    return n <= 2 ? parts[1] : parts[1] "/" parts[2]
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
    from = folder_of(file)
    if (quoted && name ~ /(^|\/)\.\.?\//)
        return "names a path with dots; write it from the root of the include path"
    target = quoted ? resolve(file, name) : ""
    if (target == "") {
        if ((name ~ /^c_icap\// || name in c_icap) && from != "icap-services/host-c-icap")
            return "is of c-icap, which only icap-services/host-c-icap may include"
        return ""
    }
    to = folder_of(target)
    if (from ~ /^common/ && to !~ /^common/)
        return "leads out of common/, which includes nothing but itself"
    if (from ~ /^icap-services/)
        return to ~ /^proxy/ ? "leads to proxy/, which icap-services/ never includes" : ""
    if (to ~ /^icap-services/)
        return "leads to icap-services/, which proxy/ never includes"
    if (!(from in rank))
        return "stands in " from "/, which has no rank; give it one in tests/check-includes.sh"
    if (!(to in rank))
        return "leads to " to "/, which has no rank; give it one in tests/check-includes.sh"
    if (rank[to] > rank[from])
        return "goes up: " from "/ may not include " to "/"
    if (rank[to] == rank[from] && to != from && to in apart)
        return "goes sideways: " from "/ and " to "/ never include one another"
    return ""
}

function check(file,   line, number, name, rule, good) {
    good = 1
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
