#include "settings/options.h"

#include <string.h>

const struct option_section option_sections[] = {
    {
        .name = "",
        .documentation = "Options of the whole proxy stand outside any section.",
    },
    {
        .name = "listen",
        .title = "ADDRESS",
        .documentation =
            "An address where clients connect: \"127.0.0.1:3128\", \"[::1]:3128\", or \":3128\" "
            "for every address of the machine, IPv4 and IPv6. The section may stand any number of "
            "times; at least one is needed.",
        .example = "listen \"127.0.0.1:3128\" { mode = forward }\n"
                   "listen \":8080\" { mode = reverse }",
    },
    {
        .name = "map",
        .title = "PREFIX",
        .documentation =
            "Where a request to a reverse listener goes: from a URL prefix to an origin. PREFIX is "
            "\"http://HOST/PATH\" or, for any host, \"/PATH\". A HOST without a port stands for "
            "that host on every port. A rule with a host goes before one without, then the longest "
            "path wins. Paths are compared letter by letter: \"/public\" is for /publicity too, "
            "\"/public/\" is not. What follows the prefix in the request's path is appended to the "
            "origin's; where a server could take a segment of that for \".\" or \"..\", encoded or "
            "not, "
            "the answer is 400. A request that no rule matches is answered with 404.",
        .example = "map \"http://www.example.com/\" { origin = \"http://127.0.0.1:9000/\" }\n"
                   "map \"/\" { origin = \"http://127.0.0.1:9001/\" }",
    },
    {
        .name = "origins",
        .title = "NAME",
        .documentation =
            "Several servers that stand for one origin, or for one parent proxy: a map or parent "
            "section names the group. A server that can not be reached, does not begin to answer "
            "in time, breaks off before it answers, or answers with a failure_status has failed. "
            "After max_failures in a row it is down and gets no more requests; after down_min one "
            "request is let through to try it (or a health_check does), and the next one follows "
            "only when that has come out well, else after twice the time, up to down_max. While "
            "all "
            "servers are down, the one whose last failure is longest ago is asked anyway. A "
            "request "
            "goes on to another server when it could not be sent, or when nothing of the answer "
            "had "
            "come and the method is one that may be repeated. \"retortctl origins\" shows how the "
            "servers are. Their state is kept over a reload.",
        .example = "origins web {\n"
                   "    servers = { \"http://10.0.0.1:8080 weight=2\", \"http://10.0.0.2:8080\",\n"
                   "                \"http://10.0.0.9:8080 backup\" }\n"
                   "    balance = least_connections\n"
                   "    max_connections = 200\n"
                   "}\n"
                   "map \"/\" { origin = web }",
    },
    {
        .name = "parent",
        .title = "CLASS",
        .documentation =
            "Requests of a URL class to a forward listener go to another proxy, CONNECT included, "
            "and not to the server that their URL names. Of several that match, the first one in "
            "the file counts; what none is for goes directly. Give each proxy of a chain a name of "
            "its own (see name).",
        .example = "origins upstream_caches { servers = { \"http://10.0.1.1:3128\", "
                   "\"http://10.0.1.2:3128\" }\n"
                   "                          balance = consistent_hash }\n"
                   "url_class intranet { domain = \"corp.example\" }\n"
                   "parent intranet { direct = always }\n"
                   "parent all { origins = upstream_caches }",
    },
    {
        .name = "cache",
        .documentation =
            "The cache, shared by all workers: in memory, and on disk where it has disk sections.",
        .example = "cache { memory = \"512MB\" max_object = \"32MB\" }",
    },
    {
        .name = "disk",
        .parent = "cache",
        .title = "PATH",
        .documentation =
            "A volume of the cache on disk, which outlives a restart. PATH is a directory, in "
            "which retort keeps the file retort.cache, or itself a file or a block device, which "
            "is overwritten. The section may stand several times in cache, with different paths, "
            "one for each device. A reload does not change volumes. Each volume belongs to one "
            "running retort.",
        .example = "cache {\n"
                   "    memory = \"1GB\"\n"
                   "    disk \"/var/cache/retort\" { size = \"10GB\" }\n"
                   "    disk \"/dev/nvme1n1\" { size = \"900GB\" admission = second }\n"
                   "}",
    },
    {
        .name = "client",
        .documentation = "Limits of connections from clients, on every listener.",
        .example = "client { idle_timeout = \"15s\" max_connections = 2000 }",
    },
    {
        .name = "origin",
        .documentation = "Connections to origin servers, and the names of origins.",
        .example = "origin { connect_timeout = \"2s\" dns_ipv6 = false }",
    },
    {
        .name = "access_log",
        .title = "PATH",
        .documentation =
            "A file to which one line is appended for every request. The section may stand several "
            "times, with different paths. Files are opened again at a reload, so that a rotated "
            "log is left.",
        .example = "access_log \"/var/log/retort/access.log\" { format = combined }",
    },
    {
        .name = "icap_service",
        .title = "NAME",
        .documentation =
            "A service of an ICAP server (RFC 3507). NAME is how adapt sections, log lines and "
            "counters call it: letters, digits, '.', '_' and '-'.",
        .example = "icap_service gray {\n"
                   "    uri = \"icap://127.0.0.1:1344/gray\"\n"
                   "    point = respmod_precache\n"
                   "    bypass = true\n"
                   "    timeout = \"5s\"\n"
                   "}",
    },
    {
        .name = "url_class",
        .title = "NAME",
        .documentation =
            "A named set of requests that services are enabled for. A class matches when every "
            "condition in it does; a condition with several values matches when one of them does. "
            "The class \"all\" is built in and matches everything. In \"double quotes\" a "
            "backslash "
            "is written twice; in 'single quotes' it stands for itself.",
        .example = "url_class images { path_regex = '\\.(jpe?g|gif|png)$' }\n"
                   "url_class shop_pages { domain = { \"example.com\", \"example.org\" }\n"
                   "                       content_type = \"text/html\" }",
    },
    {
        .name = "adapt",
        .title = "CLASS",
        .documentation =
            "The services that requests of a URL class and their responses pass, in this order. "
            "When several classes match, their chains follow one another in the order of the "
            "file; a service that stands in more than one of them is asked once.",
        .example = "adapt images { services = { gray } }\n"
                   "adapt all { services = { adremover, gzip } }",
    },
    {
        .name = "policy",
        .title = "CLASS",
        .documentation =
            "What the cache does differently for the requests of a URL class. When several "
            "policies match, the first one in the file that states an option counts for it. A "
            "class with a content_type is known to match only when the response is there: its "
            "policy can state nothing about requests and keys (ignore_client_no_cache, "
            "strip_cookies, query_drop, query_keep, query_sort, query_ignore, query_sent).",
        .example = "policy images { ttl_default = \"1d\"  query_ignore = true }\n"
                   "policy all { query_drop = { \"utm_*\", fbclid }  negative_ttl = \"30s\" }",
    },
    {
        .name = "admin",
        .documentation =
            "The admin plane: status, metrics, reload and drain, over HTTP and JSON. retortctl(1) "
            "uses it.",
        .example = "admin { listen = \"/run/retort/retort.sock\" }",
    },
    {.name = NULL},
};

const struct option_section *options_find_section(const char *name) {
    for (const struct option_section *section = option_sections; section->name != NULL; section++)
        if (strcmp(section->name, name) == 0)
            return section;
    return NULL;
}

bool option_section_is_in(const struct option_section *kind, const char *section) {
    if (kind->name[0] == '\0')
        return false;
    return strcmp(kind->parent == NULL ? "" : kind->parent, section) == 0;
}
