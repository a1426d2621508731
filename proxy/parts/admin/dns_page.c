#include "admin/dns_page.h"

#include "base/log.h"

#include <arpa/inet.h>

static json_t *addresses_json(const struct resolver_name *name) {
    json_t *list = json_array();
    char text[INET6_ADDRSTRLEN];
    for (int v6 = 1; v6 >= 0; v6--)
        for (unsigned i = 0; i < name->count[v6]; i++)
            if (inet_ntop(v6 ? AF_INET6 : AF_INET, name->ips[v6][i], text, sizeof text) != NULL)
                json_array_append_new(list, json_string(text));
    return list;
}

static json_t *name_json(unsigned worker, const struct resolver_name *name) {
    return json_pack("{s:i, s:s, s:o, s:s?, s:f, s:f, s:b, s:b, s:b}", "worker", (int)worker,
                     "name", name->name, "addresses", addresses_json(name), "error", name->error,
                     "expires_in", (double)name->expires_in / 1000, "stale_for",
                     (double)name->stale_for / 1000, "kept", (int)name->kept, "failing",
                     (int)name->failing, "asking", (int)name->asking);
}

static void dns_answer(struct page *page, const struct admin_calls *calls,
                       const struct resolver_wish *wish) {
    json_t *list = json_array();
    json_int_t found = 0, silent = 0, left_off = 0;
    for (unsigned i = 0; i < calls->worker_count; i++) {
        struct resolver_report report;
        if (!calls->names(calls->context, i, wish, &report)) {
            silent++;
            continue;
        }
        found += report.found;
        left_off += report.found - report.count;
        for (unsigned k = 0; k < report.count; k++)
            json_array_append_new(list, name_json(i, &report.names[k]));
        resolver_report_release(&report);
    }
    if (!wish->forget) {
        page_json(page, 200,
                  json_pack("{s:o, s:I, s:I}", "names", list, "left_off", left_off,
                            "workers_silent", silent));
        return;
    }
    json_decref(list);
    log_info("%lld remembered names were cleared through the admin plane", (long long)found);
    if (silent > 0)
        page_error(page, 503, "a worker did not answer in time, so it may still remember names");
    else
        page_json(page, 200, json_pack("{s:I}", "cleared", found));
}

/* Names are remembered in lower case, without dots at the end. */
static bool dns_take_name(const struct page_request *request, struct resolver_wish *wish) {
    struct slice name = slice_from(page_argument(request, "name"));
    while (name.length > 0 && name.base[name.length - 1] == '.')
        name.length--;
    if (name.length >= sizeof wish->name)
        return false;
    slice_put_lower(wish->name, name);
    return true;
}

static bool asks_for_all(const struct page_request *request) {
    const char *all = page_argument(request, "all");
    return all != NULL && strcmp(all, "no") != 0 && strcmp(all, "0") != 0;
}

void dns_page_make(struct page *page, const struct admin_calls *calls,
                   const struct page_request *request) {
    struct resolver_wish wish = {.forget = strcmp(request->path, "/dns/clear") == 0};
    if (calls->names == NULL)
        page_error(page, 404, "there are no resolvers");
    else if (!dns_take_name(request, &wish))
        page_error(page, 400, "the name is longer than a name can be");
    else if (wish.forget && wish.name[0] == '\0' && !asks_for_all(request))
        page_error(page, 400, "say what to forget: a name, or all");
    else
        dns_answer(page, calls, &wish);
}
