#include "settings/options.h"

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
            "Defines a log that gets one line for each request. The section may occur several "
            "times with different paths. A line is written when the request fits all of class, "
            "status, result and service that the section sets. A reload or SIGUSR1 opens the files "
            "again, so that log rotation works. PATH is a file, or: syslog: or syslog:/PATH for "
            "the machine's own syslog; syslog://HOST:PORT for a syslog server by UDP, port 514 "
            "unless it is named; syslog+tcp://HOST:PORT by TCP with counted lengths (RFC 6587), "
            "port 601 unless it is named; syslog+tls://HOST:PORT by TLS (RFC 5425), port 6514 "
            "unless it is named; journald:; tcp://HOST:PORT for lines over TCP; tls://HOST:PORT "
            "for lines over TLS; pipe:/PATH for a FIFO; or |PROGRAM ARGUMENTS for the standard "
            "input of a program, which is started without a shell and again when it ends. "
            "Messages for syslog are those of RFC 5424.",
        .example = "access_log \"/var/log/retort/access.log\" { format = combined }\n"
                   "access_log \"/var/log/retort/failed.log\" { format = json  status = 5xx }\n"
                   "access_log \"syslog://192.0.2.9\" { facility = local6 }",
    },
    {
        .name = "icap_log",
        .title = "PATH",
        .documentation =
            "Defines a log that gets one line for each call of an ICAP service, as Squid's "
            "icap_log "
            "has it. The lines of a request are written when the request has ended. Results that "
            "were remembered have no line, because no service was asked. The section may occur "
            "several times with different paths, which may name the same places as those of "
            "access_log.",
        .example = "icap_log \"/var/log/retort/icap.log\" { service = gray }",
    },
    {
        .name = "url_class",
        .title = "NAME",
        .documentation =
            "Defines a named class of requests. Other sections say what happens to its requests: "
            "adapt, policy, parent, and more. A class matches when all of its conditions match. A "
            "condition with several values matches when one of them does; a file adds values to "
            "the condition of the same name. What is not known of a request matches no condition. "
            "The class \"all\" is built in and matches "
            "everything. In \"double quotes\" a backslash is written twice; in 'single quotes' "
            "it stands for itself.",
        .example = "url_class images { path_regex = '\\.(jpe?g|gif|png)$' }\n"
                   "url_class shop_pages { domain = { \"example.com\", \"example.org\" }\n"
                   "                       content_type = \"text/html\" }",
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
        .name = "forwarding",
        .documentation =
            "Sets what origins and parent proxies learn of clients and of this proxy. Proxies in "
            "front of it are named by listen.trusted_proxies.",
        .example = "listen \":8080\" { mode = reverse  trusted_proxies = \"10.0.0.5\" }\n"
                   "forwarding { forwarded = append  untrusted = drop }",
    },
    {.name = NULL},
};
