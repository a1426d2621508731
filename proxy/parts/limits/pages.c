#include "admin/cache_call.h"
#include "admin/part_pages.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/plural.h"
#include "limits/limits.h"

/* The pages about limits (limits/limits.h):
 *
 *     GET  /limits?section=&client=            {"entries": N, "sections": [...], "list": [...]}
 *     POST /limits/clear?section=&client=      {"cleared": N}; without arguments: everything
 *
 * "client" is an address, which finds the network that counts it as well, or "user NAME". */

enum { LIST_MOST = 1000 }; /* entries that the list has */

/* What a call asks for. */
struct limits_wish {
    struct limits *limits;
    const struct limit_section *section; /* NULL: any */
    struct slice client;                 /* empty: any */
    json_t *list;
};

static uint64_t limits_now(void) {
    return clocks_milliseconds(CLOCK_MONOTONIC) * 1000000;
}

/* Is the text the name, or an address in the network that it names? */
static bool is_client(struct slice name, struct slice client) {
    struct network network;
    struct address address;
    return client.length == 0 || slice_equal(name, client) ||
           (address_parse_ip(&address, client, 1) && network_parse(&network, name) &&
            network_contains(&network, &address));
}

static bool is_wished(void *arg, const struct limit_report *report) {
    const struct limits_wish *wish = arg;
    const struct limit_section *section = wish->section;
    return (section == NULL || report->section == section ||
            report->section == limit_section_connections(section)) &&
           is_client(slice_from(report->name), wish->client);
}

/* The name of the section that the entry belongs to. */
static const char *limits_section_name(struct limits *limits, const void *of, bool *connections) {
    for (const struct limit_section *section = limits_first(limits); section != NULL;
         section = section->next) {
        *connections = of == limit_section_connections(section);
        if (of == section || *connections)
            return section->name;
    }
    return "";
}

static json_t *entry_to_json(struct limits *limits, const struct limit_report *report) {
    bool connections = false;
    const char *section = limits_section_name(limits, report->section, &connections);
    return json_pack("{s:s, s:o, s:b, s:i, s:I, s:I, s:f, s:f, s:f}", "section", section, "client",
                     cache_call_text(slice_from(report->name)), "connections", connections,
                     "active", (int)report->active, "taken", (json_int_t)report->taken, "refused",
                     (json_int_t)report->refused, "requests_back",
                     (double)report->busy[PACE_WAYS] / 1e9, "download_back",
                     (double)report->busy[PACE_DOWN] / 1e9, "upload_back",
                     (double)report->busy[PACE_UP] / 1e9);
}

static bool list_entry(void *arg, const struct limit_report *report) {
    struct limits_wish *wish = arg;
    if (is_wished(wish, report))
        json_array_append_new(wish->list, entry_to_json(wish->limits, report));
    return json_array_size(wish->list) < LIST_MOST;
}

static json_t *section_to_json(const struct limit_section *section) {
    json_t *refused = json_object();
    for (int i = 0; i < LIMIT_COUNTS; i++)
        json_object_set_new(refused, limit_count_name((enum limit_count)i),
                            json_integer((json_int_t)atomic_load(&section->refused[i])));
    return json_pack("{s:s, s:b, s:o}", "name", section->name, "current",
                     (int)atomic_load(&section->current), "refused", refused);
}

static void show_limits(struct page *page, struct limits_wish *wish) {
    json_t *sections = json_array();
    wish->list = json_array();
    for (const struct limit_section *section = limits_first(wish->limits); section != NULL;
         section = section->next)
        json_array_append_new(sections, section_to_json(section));
    limit_table_each(wish->limits->table, limits_now(), list_entry, wish);
    page_json(page, 200,
              json_pack("{s:I, s:o, s:o}", "entries",
                        (json_int_t)limit_table_count(wish->limits->table), "sections", sections,
                        "list", wish->list));
}

static void clear_limits(struct page *page, struct limits_wish *wish) {
    size_t cleared = limit_table_clear(wish->limits->table, limits_now(), is_wished, wish);
    log_info("%zu %s of limits cleared through the admin plane", cleared,
             plural((int64_t)cleared, "entry", "entries"));
    page_json(page, 200, json_pack("{s:I}", "cleared", (json_int_t)cleared));
}

/* False: an answer has been made. */
static bool take_wish(struct limits_wish *wish, struct page *page, const struct admin_calls *calls,
                      const struct page_request *request) {
    const char *section = page_argument(request, "section");
    struct limits *limits = calls->parts == NULL ? NULL : calls->parts[PART_LIMITS];
    if (limits == NULL) {
        page_error(page, 404, "there are no limits");
        return false;
    }
    *wish = (struct limits_wish){
        .limits = limits,
        .section = section == NULL ? NULL : limits_find(limits, section),
        .client = slice_from(page_argument(request, "client")),
    };
    if (section == NULL || wish->section != NULL)
        return true;
    page_error(page, 404, "there is no limit section of that name; /limits lists them");
    return false;
}

static void limits_answer(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request) {
    struct limits_wish wish;
    if (!take_wish(&wish, page, calls, request))
        return;
    if (strcmp(request->path, "/limits") == 0)
        show_limits(page, &wish);
    else
        clear_limits(page, &wish);
}

static void limits_print_metrics(FILE *out, void *state) {
    struct limits *limits = state;
    if (limits == NULL)
        return;
    fprintf(out,
            "# HELP retort_limit_entries Entries in the table of limits.\n"
            "# TYPE retort_limit_entries gauge\nretort_limit_entries %zu\n",
            limit_table_count(limits->table));
    fputs("# HELP retort_limit_section_refused_total What each limit section has refused, by "
          "reason.\n# TYPE retort_limit_section_refused_total counter\n",
          out);
    for (const struct limit_section *section = limits_first(limits); section != NULL;
         section = section->next)
        for (int i = 0; i < LIMIT_COUNTS; i++)
            if (atomic_load(&section->current) || atomic_load(&section->refused[i]) > 0)
                fprintf(out,
                        "retort_limit_section_refused_total{section=\"%s\",reason=\"%s\"} %llu\n",
                        section->name, limit_count_name((enum limit_count)i),
                        (unsigned long long)atomic_load(&section->refused[i]));
}

const struct part_pages limits_pages = {
    .answer = limits_answer,
    .print_metrics = limits_print_metrics,
};
