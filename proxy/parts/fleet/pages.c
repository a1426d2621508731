#include "admin/cache_call.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "base/clocks.h"
#include "fleet/state.h"

#include <inttypes.h>
#include <stdlib.h>

/* The part fleet in the admin plane: its nodes, and metrics. */

static const char *state_word(const struct fleet_report *report) {
    if (report->conflict)
        return "conflict";
    if (!report->connected)
        return "away";
    return report->proven ? "proven" : "unproven";
}

/* "0.4 s": so long ago it has said so, by its clock and ours. */
static void write_said(const struct fleet_member *member, char text[32]) {
    uint64_t now = clocks_nanoseconds(CLOCK_REALTIME) / 1000000;
    snprintf(text, 32, "%.1f s", now > member->at ? (double)(now - member->at) / 1000 : 0.0);
}

static json_t *members_json(const struct fleet_member *members, size_t count) {
    json_t *list = json_array();
    char said[32];
    for (size_t i = 0; i < count; i++) {
        const struct fleet_member *member = &members[i];
        write_said(member, said);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "node", member->node, "state",
                            member->proven ? "proven" : "unproven", "position", member->position,
                            "generation", member->generation, "said", said, "version",
                            member->version, "at", (json_int_t)member->at));
    }
    return list;
}

static void show_fleet(struct page *page, struct fleet_state *state) {
    struct fleet_report report;
    struct fleet_member *members = NULL;
    size_t count = 0;
    char error[FLEET_ERROR];
    fleet_node_report(state->node, &report);
    bool there = fleet_node_members(state->node, &members, &count, error);
    const char *trouble = report.trouble[0] != '\0' ? report.trouble : there ? NULL : error;
    /* An engine's words may be any bytes. */
    json_t *said = trouble != NULL ? cache_call_text(slice_from(trouble)) : json_null();
    page_json(page, 200,
              json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "fleet",
                        state->settings->name, "node", state->settings->node, "state",
                        state_word(&report), "generation", report.generation, "position",
                        report.position, "proven_ms", (json_int_t)report.proven_for, "waiting",
                        (json_int_t)report.numbers.waiting, "trouble", said, "nodes",
                        members_json(members, count)));
    free(members);
}

static void forget_node(struct page *page, struct fleet_state *state, const char *name) {
    char error[FLEET_ERROR];
    if (name == NULL || !fleet_name_is_good(slice_from(name)))
        page_error(page, 400, "this is no name of a node; retortctl fleet shows them");
    else if (!fleet_node_forget(state->node, name, error))
        page_error(page, 503, error);
    else
        page_json(page, 200, json_pack("{s:s}", "forgotten", name));
}

static void fleet_answer(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request) {
    struct fleet_state *state = calls->parts[PART_FLEET];
    const char *name = page_argument(request, "node");
    if (state == NULL && name == NULL)
        page_json(page, 200, json_pack("{s:n, s:[]}", "fleet", "nodes"));
    else if (state == NULL)
        page_error(page, 404, "this proxy is a node of no fleet: see the section fleet");
    else if (name != NULL)
        forget_node(page, state, name);
    else
        show_fleet(page, state);
}

static void print_number(FILE *out, const char *name, const char *help, uint64_t value) {
    fprintf(out, "# HELP %s %s\n# TYPE %s counter\n%s %" PRIu64 "\n", name, help, name, name,
            value);
}

static void print_gauge(FILE *out, const char *name, const char *help, uint64_t value) {
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %" PRIu64 "\n", name, help, name, name, value);
}

static void fleet_print_metrics(FILE *out, void *of) {
    struct fleet_state *state = of;
    struct fleet_report report;
    if (state == NULL)
        return;
    fleet_node_report(state->node, &report);
    const struct fleet_numbers *numbers = &report.numbers;
    print_gauge(out, "retort_fleet_connected", "1 while the engine of the fleet answers.",
                report.connected);
    print_gauge(out, "retort_fleet_proven",
                "1 while this node knows all that the fleet has told; otherwise on_isolation says "
                "what becomes of stored responses.",
                report.proven);
    print_gauge(out, "retort_fleet_waiting",
                "Events of this node that the engine does not have yet.", numbers->waiting);
    print_number(out, "retort_fleet_told_total", "Events that this node has told the fleet.",
                 numbers->told);
    print_number(out, "retort_fleet_applied_total", "Events of other nodes that are in force here.",
                 numbers->applied);
    print_number(out, "retort_fleet_proofs_total",
                 "Times that this node has proved that it knows all.", numbers->proofs);
    print_number(out, "retort_fleet_doubts_total",
                 "Times that all that is stored had to be asked for again, because events were "
                 "missing or may have been.",
                 numbers->gaps);
    print_number(out, "retort_fleet_rejected_total",
                 "Entries of the stream that no node with the key of the fleet has written.",
                 numbers->rejected);
    print_number(out, "retort_fleet_conflicts_total",
                 "Events that another node told under the name of this one.", numbers->conflicts);
}

const struct part_pages fleet_pages = {
    .answer = fleet_answer,
    .print_metrics = fleet_print_metrics,
};
