#include "ctl/show.h"

#include "base/plural.h"
#include "ctl/terminal.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

static const char *show_text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "?";
}

static json_int_t show_number_of(const json_t *object, const char *name) {
    return json_integer_value(json_object_get(object, name));
}

/* "2d 3h", "3h 4m", "4m 5s", "5s" */
static void format_uptime(double seconds, char *out, size_t capacity) {
    unsigned long s = (unsigned long)seconds;
    if (s >= 86400)
        snprintf(out, capacity, "%lud %luh", s / 86400, s % 86400 / 3600);
    else if (s >= 3600)
        snprintf(out, capacity, "%luh %lum", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(out, capacity, "%lum %lus", s / 60, s % 60);
    else
        snprintf(out, capacity, "%lus", s);
}

static void format_bytes(json_int_t bytes, char *out, size_t capacity) {
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    snprintf(out, capacity, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static const char *state_begin(FILE *out, const json_t *object) {
    return terminal_begin(out, terminal_of_state(show_text_of(object, "state")));
}

static void show_cache(FILE *out, const json_t *status) {
    const json_t *cache = json_object_get(status, "cache");
    const json_t *counters = json_object_get(status, "counters");
    char used[40], limit[40];
    json_int_t hits = show_number_of(counters, "cache_hits");
    json_int_t lookups = hits + show_number_of(counters, "cache_misses") +
                         show_number_of(counters, "cache_revalidated");
    format_bytes(show_number_of(cache, "bytes"), used, sizeof used);
    format_bytes(show_number_of(cache, "limit"), limit, sizeof limit);
    fprintf(out, "cache     %s of %s, %" JSON_INTEGER_FORMAT " %s", used, limit,
            show_number_of(cache, "objects"),
            plural(show_number_of(cache, "objects"), "object", "objects"));
    if (lookups > 0)
        fprintf(out, ", %.1f %% of %" JSON_INTEGER_FORMAT " lookups were hits",
                100.0 * (double)hits / (double)lookups, lookups);
    fputc('\n', out);
}

static void show_service_states(FILE *out, const json_t *services) {
    size_t i;
    json_t *service;
    if (json_array_size(services) == 0)
        return;
    fputc('\n', out);
    terminal_heading(out, "%-24s %-6s %-8s %12s %8s", "service", "kind", "state", "in use",
                     "waiting");
    json_array_foreach(services, i, service)
        fprintf(out, "%-24s %-6s %s%-8s%s %12" JSON_INTEGER_FORMAT " %8" JSON_INTEGER_FORMAT "\n",
                show_text_of(service, "name"), show_text_of(service, "kind"),
                state_begin(out, service), show_text_of(service, "state"), terminal_end(out),
                show_number_of(service, "connections"), show_number_of(service, "pending"));
}

static void show_certificates(FILE *out, const json_t *certificates) {
    size_t i;
    json_t *certificate;
    if (json_array_size(certificates) == 0)
        return;
    fputc('\n', out);
    terminal_heading(out, "%-32s %-24s %-10s %6s  %s", "certificate", "listener", "expires", "days",
                     "ocsp");
    json_array_foreach(certificates, i, certificate) fprintf(
        out, "%-32s %-24s %-10s %6" JSON_INTEGER_FORMAT "  %s\n", show_text_of(certificate, "name"),
        show_text_of(certificate, "listen"), show_text_of(certificate, "expires"),
        show_number_of(certificate, "days"), show_text_of(certificate, "ocsp"));
}

static void show_trust(FILE *out, const json_t *trust) {
    size_t i;
    json_t *row;
    if (json_array_size(trust) == 0)
        return;
    fputc('\n', out);
    terminal_heading(out, "%-12s %-28s %-10s %6s  %s", "trust", "of", "expires", "days", "file");
    json_array_foreach(trust, i, row)
        fprintf(out, "%-12s %-28s %-10s %6" JSON_INTEGER_FORMAT "  %s\n", show_text_of(row, "kind"),
                show_text_of(row, "place"), show_text_of(row, "expires"),
                show_number_of(row, "days"), show_text_of(row, "file"));
}

static void show_counters(FILE *out, json_t *counters) {
    const char *name;
    json_t *value;
    size_t zeros = 0;
    fputc('\n', out);
    terminal_heading(out, "%-32s %20s", "counter", "value");
    json_object_foreach(counters, name, value) {
        if (json_integer_value(value) == 0)
            zeros++;
        else
            fprintf(out, "%-32s %20" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
    }
    if (zeros > 0)
        fprintf(out, "(%zu more are 0)\n", zeros);
}

void show_status(FILE *out, json_t *status) {
    char uptime[40];
    json_int_t workers = show_number_of(status, "workers"),
               silent = show_number_of(status, "workers_silent");
    format_uptime(json_number_value(json_object_get(status, "uptime")), uptime, sizeof uptime);
    fprintf(out,
            "retort %s, pid %" JSON_INTEGER_FORMAT ", %s, up %s, %" JSON_INTEGER_FORMAT
            " worker%s\n",
            show_text_of(status, "version"), show_number_of(status, "pid"),
            show_text_of(status, "state"), uptime, workers, workers == 1 ? "" : "s");
    fprintf(out, "settings  %s\n", show_text_of(status, "file"));
    show_cache(out, status);
    if (silent > 0)
        fprintf(out,
                "WARNING: %" JSON_INTEGER_FORMAT
                " %s did not answer in time; counters are missing below\n",
                silent, plural(silent, "worker", "workers"));
    show_service_states(out, json_object_get(status, "icap_services"));
    show_certificates(out, json_object_get(status, "certificates"));
    show_trust(out, json_object_get(status, "trust"));
    show_counters(out, json_object_get(status, "counters"));
}

/* "down, next try in 3 s: Connection refused" */
static void show_server_state(FILE *out, const json_t *server) {
    const json_t *retry = json_object_get(server, "retry_in");
    const char *error = json_string_value(json_object_get(server, "last_error"));
    fprintf(out, "%s%s%s", state_begin(out, server), show_text_of(server, "state"),
            terminal_end(out));
    if (strcmp(show_text_of(server, "state"), "up") == 0 ||
        strcmp(show_text_of(server, "state"), "drain") == 0) {
        fputc('\n', out);
        return;
    }
    if (json_is_real(retry))
        fprintf(out, ", next try in %.1f s", json_real_value(retry));
    fprintf(out, ": %s\n", error != NULL ? error : "?");
}

/* "https://_https._tcp.shop.example (shop.example): 2 servers, asked again in 58.0 s" */
static void show_source(FILE *out, const json_t *source) {
    const char *error = json_string_value(json_object_get(source, "last_error"));
    long long left_out = show_number_of(source, "left_out");
    fprintf(out, "%s (%s): ", show_text_of(source, "url"), show_text_of(source, "named"));
    if (strcmp(show_text_of(source, "state"), "asking") == 0) {
        fputs("the name servers are being asked\n", out);
        return;
    }
    long long servers = show_number_of(source, "servers");
    fprintf(out, "%lld server%s", servers, servers == 1 ? "" : "s");
    if (left_out > 0)
        fprintf(out, ", %lld left out", left_out);
    if (strcmp(show_text_of(source, "state"), "found") == 0)
        fprintf(out, ", ttl %.0f s", json_number_value(json_object_get(source, "ttl")));
    fprintf(out, ", asked again in %.0f s", json_number_value(json_object_get(source, "asked_in")));
    fprintf(out, "%s%s\n", error != NULL ? ": " : "", error != NULL ? error : "");
}

static void show_sources(FILE *out, const json_t *sources) {
    size_t i;
    json_t *source;
    json_array_foreach(sources, i, source) {
        show_source(out, source);
    }
}

static void show_group(FILE *out, const json_t *group) {
    size_t i;
    json_t *server;
    fprintf(out, "origins %s, %s", show_text_of(group, "name"), show_text_of(group, "balance"));
    if (show_number_of(group, "max_connections") > 0)
        fprintf(out, ", at most %" JSON_INTEGER_FORMAT " requests at a server",
                show_number_of(group, "max_connections"));
    fprintf(out, ", %" JSON_INTEGER_FORMAT " waiting\n", show_number_of(group, "queued"));
    show_sources(out, json_object_get(group, "sources"));
    terminal_heading(out, "%-40s %6s %6s %10s %8s  %s", "server", "weight", "active", "requests",
                     "failed", "state");
    json_array_foreach(json_object_get(group, "servers"), i, server) {
        bool backup = json_is_true(json_object_get(server, "backup"));
        fprintf(out,
                "%-40s %6" JSON_INTEGER_FORMAT " %6" JSON_INTEGER_FORMAT " %10" JSON_INTEGER_FORMAT
                " %8" JSON_INTEGER_FORMAT "  %s",
                show_text_of(server, "url"), show_number_of(server, "weight"),
                show_number_of(server, "active"), show_number_of(server, "requests"),
                show_number_of(server, "failed"), backup ? "backup, " : "");
        show_server_state(out, server);
    }
}

void show_origins(FILE *out, json_t *origins) {
    size_t i;
    json_t *group, *groups = json_object_get(origins, "origins");
    if (json_array_size(groups) == 0)
        fputs("there are no groups: the configuration has no origins section\n", out);
    json_array_foreach(groups, i, group) {
        if (i > 0)
            fputc('\n', out);
        show_group(out, group);
    }
}

/* "verdict_seconds" is shown as "verdict  mean 1.2 ms, half below 0.5 ms, ..." */
static void show_times(FILE *out, const char *name, const json_t *times) {
    const char *unit = strstr(name, "_seconds");
    int length = unit != NULL ? (int)(unit - name) : (int)strlen(name);
    if (show_number_of(times, "count") == 0)
        return;
    fprintf(out, "    %-*.*s mean %.2f ms, half below %.2f ms, 90 %% %.2f ms, 99 %% %.2f ms\n", 18,
            length, name, 1e3 * json_number_value(json_object_get(times, "mean")),
            1e3 * json_number_value(json_object_get(times, "p50")),
            1e3 * json_number_value(json_object_get(times, "p90")),
            1e3 * json_number_value(json_object_get(times, "p99")));
}

/* Local time. */
static void show_time(FILE *out, const json_t *holder, const char *name) {
    char text[32];
    time_t at = (time_t)show_number_of(holder, name);
    struct tm local;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", localtime_r(&at, &local));
    fprintf(out, "since %s", text);
}

static void show_why(FILE *out, const json_t *holder) {
    const json_t *retry = json_object_get(holder, "retry_in");
    fprintf(out, ": %s", show_text_of(holder, "error"));
    if (json_is_real(retry))
        fprintf(out, "; next try in %.1f s", json_real_value(retry));
}

/* Prints since when it is down, why, and when it is tried next. */
static void show_trouble(FILE *out, const json_t *endpoint) {
    if (json_object_get(endpoint, "error") == NULL)
        return;
    fputs("        ", out);
    show_time(out, endpoint, "since");
    show_why(out, endpoint);
    fputc('\n', out);
}

static void show_unadapted(FILE *out, const json_t *unadapted) {
    if (unadapted == NULL)
        return;
    fprintf(out, "    %" JSON_INTEGER_FORMAT " messages passed unadapted ",
            show_number_of(unadapted, "messages"));
    show_time(out, unadapted, "since");
    fputc('\n', out);
}

static void show_endpoint(FILE *out, const json_t *endpoint) {
    fprintf(out, "    %-40s %s%-8s%s %" JSON_INTEGER_FORMAT " in use\n",
            show_text_of(endpoint, "uri"), state_begin(out, endpoint),
            show_text_of(endpoint, "state"), terminal_end(out),
            show_number_of(endpoint, "connections"));
    show_trouble(out, endpoint);
    if (json_object_get(endpoint, "notice") != NULL)
        fprintf(out, "        notice: %s\n", show_text_of(endpoint, "notice"));
}

/* Threads or processes that run it: "process 4711: up since ..., started 2 times". */
static void show_runners(FILE *out, const json_t *runners, const char *kind) {
    size_t i;
    json_t *runner;
    json_array_foreach(runners, i, runner) {
        fprintf(out, "        %s", kind);
        if (json_object_get(runner, "pid") != NULL)
            fprintf(out, " %" JSON_INTEGER_FORMAT, show_number_of(runner, "pid"));
        fprintf(out, ": %s%s%s ", state_begin(out, runner), show_text_of(runner, "state"),
                terminal_end(out));
        show_time(out, runner, "since");
        if (show_number_of(runner, "starts") > 1)
            fprintf(out, ", started %" JSON_INTEGER_FORMAT " times",
                    show_number_of(runner, "starts"));
        if (show_number_of(runner, "hangs") > 0)
            fprintf(out, ", did not answer %" JSON_INTEGER_FORMAT " times",
                    show_number_of(runner, "hangs"));
        if (json_object_get(runner, "error") != NULL)
            show_why(out, runner);
        fputc('\n', out);
    }
}

static void show_service(FILE *out, const json_t *service) {
    size_t i;
    json_t *endpoint, *value;
    const char *name;
    const char *istag = show_text_of(service, "istag"), *product = show_text_of(service, "service");
    const char *id = show_text_of(service, "service_id");
    fprintf(out,
            "%s (%s), %s: %s%s%s, connections: %" JSON_INTEGER_FORMAT
            " in use, %" JSON_INTEGER_FORMAT " waited for%s%s%s%s\n",
            show_text_of(service, "name"), show_text_of(service, "kind"),
            show_text_of(service, "point"), show_text_of(service, "state"),
            istag[0] != '\0' ? ", ISTag " : "", istag, show_number_of(service, "connections"),
            show_number_of(service, "pending"), product[0] != '\0' ? "; " : "", product,
            id[0] != '\0' ? "; Service-ID " : "", id);
    json_array_foreach(json_object_get(service, "endpoints"), i, endpoint)
        show_endpoint(out, endpoint);
    show_runners(out, json_object_get(service, "processes"), "process");
    show_runners(out, json_object_get(service, "threads"), "thread");
    show_unadapted(out, json_object_get(service, "unadapted"));
    json_object_foreach(json_object_get(service, "account"), name,
                        value) if (json_integer_value(value) > 0)
        fprintf(out, "    %-18s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
    json_object_foreach(json_object_get(service, "counts"), name,
                        value) if (json_integer_value(value) > 0)
        fprintf(out, "    %-18s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
    json_object_foreach(json_object_get(service, "times"), name, value)
        show_times(out, name, value);
}

void show_services(FILE *out, json_t *services) {
    size_t i;
    json_t *service, *array = json_object_get(services, "services");
    if (json_array_size(array) == 0)
        fputs("there are no services: the configuration has no section icap_service or service\n",
              out);
    json_array_foreach(array, i, service) {
        if (i > 0)
            fputc('\n', out);
        show_service(out, service);
    }
}

static void show_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (strchr("\\\"$", *text) != NULL)
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void show_value(FILE *out, const json_t *value) {
    size_t i;
    json_t *element;
    if (json_is_string(value)) {
        show_string(out, json_string_value(value));
    } else if (json_is_array(value) && json_array_size(value) == 0) {
        fputs("none", out);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, element) {
            fputs(i == 0 ? "{ " : ", ", out);
            show_value(out, element);
        }
        fputs(" }", out);
    } else if (json_is_real(value)) {
        fprintf(out, "%.10g", json_real_value(value));
    } else if (json_is_integer(value)) {
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else {
        fputs(json_is_true(value) ? "true" : "false", out);
    }
}

static void show_option(FILE *out, const char *indent, const char *name, const json_t *value) {
    if (json_is_null(value)) {
        fprintf(out, "%s# %s is not set\n", indent, name);
        return;
    }
    fprintf(out, "%s%s = ", indent, name);
    show_value(out, value);
    fputc('\n', out);
}

static bool is_built_in(const char *section, const json_t *element) {
    return strcmp(section, "url_class") == 0 && strcmp(show_text_of(element, "name"), "all") == 0;
}

static bool holds_sections(const json_t *value) {
    return json_is_array(value) &&
           (json_array_size(value) == 0 || json_is_object(json_array_get(value, 0)));
}

/* Prints a section inside another one on a single line. */
static void show_inner_section(FILE *out, const char *section, json_t *members) {
    const char *name;
    json_t *value;
    bool title = true;
    fprintf(out, "    %s ", section);
    json_object_foreach(members, name, value) {
        if (!title)
            fprintf(out, " %s = ", name);
        show_value(out, value);
        if (title)
            fputs(" {", out);
        title = false;
    }
    fputs(" }\n", out);
}

/* The first member of an element is the section's title. */
static void show_section(FILE *out, const char *section, json_t *members, bool titled) {
    const char *name;
    json_t *value, *element;
    size_t i;
    bool title = titled;
    fprintf(out, "\n%s ", section);
    if (!titled)
        fputs("{\n", out);
    json_object_foreach(members, name, value) {
        if (title) {
            show_string(out, json_string_value(value));
            fputs(" {\n", out);
        } else if (strcmp(name, "disk") == 0 && holds_sections(value)) {
            json_array_foreach(value, i, element) show_inner_section(out, name, element);
        } else {
            show_option(out, "    ", name, value);
        }
        title = false;
    }
    fputs("}\n", out);
}

static void show_included(FILE *out, json_t *files) {
    json_t *file;
    size_t i;
    json_array_foreach(files, i, file) if (i > 0)
        fprintf(out, "# including %s\n", json_string_value(file));
}

/* What was included is shown itself, so that the whole is one file. */
void show_settings(FILE *out, json_t *settings) {
    const char *name;
    json_t *value, *element;
    size_t i;
    json_object_foreach(settings, name, value) {
        if (strcmp(name, "file") == 0)
            fprintf(out, "# %s, with defaults\n", json_string_value(value));
        else if (strcmp(name, "files") == 0)
            show_included(out, value);
        else if (strcmp(name, "include") == 0)
            continue;
        else if (json_is_object(value))
            show_section(out, name, value, false);
        else if (strcmp(name, "connect_ports") == 0 || !holds_sections(value))
            show_option(out, "", name, value);
        else
            json_array_foreach(value, i, element) if (!is_built_in(name, element))
                show_section(out, name, element, true);
    }
}
