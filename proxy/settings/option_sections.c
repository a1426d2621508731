#include "settings/options.h"

#include <string.h>

const struct option_section option_sections[] = {
    {
        .name = "",
        .documentation = "These options stand outside any section.",
    },
    {
        .name = "listen",
        .title = "ADDRESS",
        .documentation =
            "Sets an address where clients connect: \"127.0.0.1:3128\", \"[::1]:3128\", or "
            "\":3128\" for every address of the machine, IPv4 and IPv6. The section may occur "
            "any number of times. At least one is needed.",
        .example = "listen \"127.0.0.1:3128\" { mode = forward }\n"
                   "listen \":8080\" { mode = reverse }",
    },
    {
        .name = "transparent",
        .documentation =
            "Sets how listeners with mode = transparent work. The kernel sends them connections "
            "that clients have opened to servers on the Internet. docs/TRANSPARENT.md and "
            "examples/transparent/ show the rules of the firewall that are needed.",
        .example = "listen \":3130\" { mode = transparent }\n"
                   "transparent { tproxy = true  spoof_client = true }",
    },
    {
        .name = "map",
        .title = "PREFIX",
        .documentation =
            "Sets where requests to a reverse listener go: from a URL prefix to an origin. "
            "PREFIX is \"http://HOST/PATH\" or, for any host, \"/PATH\". A HOST without a port "
            "stands for that host on every port. A rule with a host takes precedence over one "
            "without. Among the rules that remain, the longest path wins. Paths are compared "
            "letter by letter: \"/public\" also matches /publicity, \"/public/\" does not. The "
            "rest of the request's path after the prefix is appended to the path of the origin. "
            "The answer is 400 when that rest contains a segment that a server could take for "
            "\".\" or \"..\", encoded or not. A request that no rule matches is answered with "
            "404.",
        .example = "map \"http://www.example.com/\" { origin = \"http://127.0.0.1:9000/\" }\n"
                   "map \"/\" { origin = \"http://127.0.0.1:9001/\" }",
    },
    {
        .name = "origins",
        .title = "NAME",
        .documentation =
            "Defines a group of servers that stand for one origin, or for one parent proxy. A "
            "map or parent section names the group. A server fails when it can not be reached, "
            "does not begin to answer in time, closes the connection before it answers, or "
            "answers with a failure_status. After max_failures in a row it is down and gets no "
            "more requests. After down_min, one request (or a health_check) tries it again. If "
            "this fails, the next try follows after twice the time, up to down_max. While all "
            "servers are down, Retort asks the one whose last failure is longest ago. A request "
            "moves on to another server when it could not be sent, or when no byte of the answer "
            "had arrived and its method may be repeated. \"retortctl origins\" shows the state "
            "of the servers. A reload keeps the state.",
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
            "Sends requests of a URL class on forward listeners to another proxy, CONNECT "
            "included, instead of to the server in their URL. When several sections match, the "
            "first one in the file applies. A request that none matches goes directly to its "
            "server. Give each proxy of a chain a name of its own (see name).",
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
            "Configures the cache, which all workers share. It is in memory, and also on disk if "
            "it contains disk sections.",
        .example = "cache { memory = \"512MB\" max_object = \"32MB\" }",
    },
    {
        .name = "disk",
        .parent = "cache",
        .title = "PATH",
        .documentation =
            "Defines a volume of the cache on disk, which survives a restart. PATH is a "
            "directory, where retort creates the file retort.cache, or a file or a block device, "
            "which is overwritten. The section may occur several times in cache with different "
            "paths, one for each device. A reload does not change volumes. Each volume belongs "
            "to one running retort.",
        .example = "cache {\n"
                   "    memory = \"1GB\"\n"
                   "    disk \"/var/cache/retort\" { size = \"10GB\" }\n"
                   "    disk \"/dev/nvme1n1\" { size = \"900GB\" admission = second }\n"
                   "}",
    },
    {
        .name = "client",
        .documentation = "Sets limits of client connections on all listeners.",
        .example = "client { idle_timeout = \"15s\" max_connections = 2000 }",
    },
    {
        .name = "origin",
        .documentation = "Configures connections to origin servers and the lookup of their names.",
        .example = "origin { connect_timeout = \"2s\" dns_ipv6 = false }",
    },
    {
        .name = "access_log",
        .title = "PATH",
        .documentation =
            "Defines a file that gets one line for each request. The section may occur several "
            "times with different paths. A reload opens the files again, so that log rotation "
            "works.",
        .example = "access_log \"/var/log/retort/access.log\" { format = combined }",
    },
    {
        .name = "icap_service",
        .title = "NAME",
        .documentation =
            "Defines a service of an ICAP server (RFC 3507). NAME identifies it in adapt "
            "sections, log lines and metrics. It consists of letters, digits, '.', '_' and '-'.",
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
            "Defines a named class of requests, which adapt, policy and parent sections refer "
            "to. A class matches when all of its conditions match. A condition with several "
            "values matches when one of them does. The class \"all\" is built in and matches "
            "everything. In \"double quotes\" a backslash is written twice; in 'single quotes' "
            "it stands for itself.",
        .example = "url_class images { path_regex = '\\.(jpe?g|gif|png)$' }\n"
                   "url_class shop_pages { domain = { \"example.com\", \"example.org\" }\n"
                   "                       content_type = \"text/html\" }",
    },
    {
        .name = "adapt",
        .title = "CLASS",
        .documentation =
            "Lists the services that requests of a URL class and their responses pass, in this "
            "order. When several classes match, their lists are joined in the order of the file. "
            "A service that occurs in more than one of them is asked once.",
        .example = "adapt images { services = { gray } }\n"
                   "adapt all { services = { adremover, gzip } }",
    },
    {
        .name = "policy",
        .title = "CLASS",
        .documentation =
            "Changes what the cache does for requests of a URL class. When several policies "
            "match, each option is taken from the first policy in the file that sets it. A class "
            "with a content_type is known to match only when the response is there, so its "
            "policy can not set options about requests and keys (ignore_client_no_cache, "
            "strip_cookies, query_drop, query_keep, query_sort, query_ignore, query_sent).",
        .example = "policy images { ttl_default = \"1d\"  query_ignore = true }\n"
                   "policy all { query_drop = { \"utm_*\", fbclid }  negative_ttl = \"30s\" }",
    },
    {
        .name = "intercept",
        .title = "CLASS",
        .documentation =
            "Sets what happens to the TLS connections of a URL class that clients open with "
            "CONNECT "
            "on forward listeners, or at transparent listeners. When several sections match, the "
            "first one in the file applies. A connection that none matches is spliced, and so is "
            "one "
            "that a parent section sends to another proxy. A class is "
            "compared with the URL https://NAME/, where NAME is what the client asks for in its "
            "ClientHello (SNI), or else the host that it connects to. When both are names and "
            "differ, the more restrictive action of the two applies: block, then bump, then "
            "splice. Without intercept sections, CONNECT opens tunnels and nothing is looked "
            "at.",
        .example = "url_class banks { domain = { \"bank.example\", \"health.example\" } }\n"
                   "intercept banks { action = splice }\n"
                   "intercept all { action = bump }",
    },
    {
        .name = "authority",
        .documentation =
            "Names the certificate authority (CA) that signs the certificates which clients of "
            "intercepted connections get. \"retortctl ca create\" makes it, and \"retortctl ca "
            "export\" says how clients install it. Whoever has its key can impersonate every "
            "server to these clients. A reload applies a change.",
        .example = "authority {\n"
                   "    certificate = \"/etc/retort/ca.pem\"\n"
                   "    key = \"/etc/retort/ca.key\"\n"
                   "}",
    },
    {
        .name = "interception",
        .documentation = "Configures how TLS connections are intercepted (see intercept).",
        .example = "interception { not_tls = refuse  refusals = 0 }",
    },
    {
        .name = "admin",
        .documentation =
            "Configures the admin plane: status, metrics, reload and drain, over HTTP and JSON. "
            "retortctl(1) uses it.",
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
