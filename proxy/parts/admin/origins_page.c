#include "admin/origins_page.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "origin/group.h"

#include <inttypes.h>
#include <time.h>

static json_t *member_to_json(const struct origin_member_report *member) {
    json_t *json = json_pack(
        "{s:s, s:s, s:i, s:b, s:i, s:I, s:I, s:i, s:I}", "url", member->url, "state", member->state,
        "weight", (int)member->weight, "backup", (int)member->backup, "active", (int)member->active,
        "requests", (json_int_t)member->requests, "failed", (json_int_t)member->failed,
        "failed_in_a_row", (int)member->failures, "times_down", (json_int_t)member->downs);
    json_object_set_new(
        json, "retry_in",
        member->retry_in == TIMER_NEVER ? json_null() : json_real((double)member->retry_in / 1000));
    json_object_set_new(json, "last_error",
                        member->error == NULL ? json_null() : json_string(member->error));
    if (member->source == NULL)
        return json;
    json_object_set_new(json, "source", json_string(member->source));
    json_object_set_new(json, "priority", json_integer(member->priority));
    return json;
}

/* A name whose SRV records name servers. */
static json_t *source_to_json(const struct origin_source_report *source) {
    json_t *json = json_pack("{s:s, s:s, s:s, s:b, s:b, s:i, s:i, s:f, s:f}", "url", source->url,
                             "named", source->named, "state", source->state, "drain",
                             (int)source->drain, "failing", (int)source->failing, "servers",
                             (int)source->servers, "left_out", (int)source->left_out, "ttl",
                             (double)source->ttl / 1000, "asked_in", (double)source->ask_in / 1000);
    json_object_set_new(json, "last_error",
                        source->error == NULL ? json_null() : json_string(source->error));
    return json;
}

static json_t *group_to_json(struct origin_group *group, const struct origins_settings *settings) {
    static const char *const balances[] = {"round_robin", "least_connections", "consistent_hash"};
    struct origin_group_report report;
    json_t *servers = json_array(), *sources = json_array();
    origin_group_report(group, clocks_milliseconds(CLOCK_MONOTONIC_COARSE), &report);
    for (size_t i = 0; i < report.count; i++)
        json_array_append_new(servers, member_to_json(&report.members[i]));
    for (size_t i = 0; i < report.source_count; i++)
        json_array_append_new(sources, source_to_json(&report.sources[i]));
    json_t *json = json_pack("{s:s, s:s, s:i, s:i, s:o, s:o}", "name", settings->name, "balance",
                             balances[settings->rules.balance], "max_connections",
                             (int)settings->rules.max_connections, "queued", (int)report.queued,
                             "servers", servers, "sources", sources);
    origin_group_report_release(&report);
    return json;
}

void origins_page_make(struct page *page, const struct admin_calls *calls) {
    json_t *array = json_array();
    struct origin_groups *groups = calls->origins == NULL ? NULL : calls->origins(calls->context);
    for (size_t i = 0; groups != NULL && i < groups->count; i++)
        json_array_append_new(array,
                              group_to_json(groups->list[i], &groups->settings->origins_groups[i]));
    origin_groups_release(&groups);
    page_json(page, 200, json_pack("{s:o}", "origins", array));
}

/* Prints one metric for every server. Names of groups and URLs of servers need no escaping. */
static void print_of_servers(FILE *out, const struct origin_groups *groups,
                             const struct origin_group_report *reports, const char *name,
                             const char *type, const char *help,
                             uint64_t (*value)(const struct origin_member_report *member)) {
    fprintf(out, "# HELP retort_%s %s\n# TYPE retort_%s %s\n", name, help, name, type);
    for (size_t i = 0; i < groups->count; i++)
        for (size_t j = 0; j < reports[i].count; j++)
            fprintf(out, "retort_%s{origins=\"%s\",server=\"%s\"} %" PRIu64 "\n", name,
                    groups->settings->origins_groups[i].name, reports[i].members[j].url,
                    value(&reports[i].members[j]));
}

static uint64_t origins_page_is_up(const struct origin_member_report *member) {
    return !member->down;
}

static uint64_t active(const struct origin_member_report *member) {
    return member->active;
}

static uint64_t requests(const struct origin_member_report *member) {
    return member->requests;
}

static uint64_t origins_page_failed(const struct origin_member_report *member) {
    return member->failed;
}

static void print_groups(FILE *out, const struct origin_groups *groups) {
    struct origin_group_report *reports = xcalloc(groups->count, sizeof *reports);
    for (size_t i = 0; i < groups->count; i++)
        origin_group_report(groups->list[i], clocks_milliseconds(CLOCK_MONOTONIC_COARSE),
                            &reports[i]);
    print_of_servers(out, groups, reports, "origin_server_up", "gauge",
                     "1 when the server is up, 0 when it is down. One that is drained has the "
                     "value that it would "
                     "have otherwise.",
                     origins_page_is_up);
    print_of_servers(out, groups, reports, "origin_server_active", "gauge",
                     "Requests in progress at the server.", active);
    print_of_servers(out, groups, reports, "origin_server_requests_total", "counter",
                     "Requests sent to the server.", requests);
    print_of_servers(out, groups, reports, "origin_server_failed_total", "counter",
                     "Requests that failed at the server.", origins_page_failed);
    fputs("# HELP retort_origins_queued Requests that wait for a server of the group.\n"
          "# TYPE retort_origins_queued gauge\n",
          out);
    for (size_t i = 0; i < groups->count; i++) {
        fprintf(out, "retort_origins_queued{origins=\"%s\"} %u\n",
                groups->settings->origins_groups[i].name, reports[i].queued);
        origin_group_report_release(&reports[i]);
    }
    free(reports);
}

void origins_page_print_metrics(FILE *out, const struct admin_calls *calls) {
    struct origin_groups *groups = calls->origins == NULL ? NULL : calls->origins(calls->context);
    if (groups != NULL && groups->count > 0)
        print_groups(out, groups);
    origin_groups_release(&groups);
}
