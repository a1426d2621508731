#include "inject/settings.h"

#include "service/arguments.h"

#include <strings.h>

const struct service_option inject_options[] = {
    {"Helperd", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, helperd),
     "/run/retort/helperd.sock", 0, 0, NULL, "The socket of retort-helperd."},
    {"Pool", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, pool), "text", 0, 0, NULL,
     "The pool of retort-helperd that gives the texts."},
    {"Deadline", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, deadline), "2s", 1,
     600000, NULL, "How long a page may wait for its text."},
    {"Scope", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, scope), "client", 0, 0,
     "client|shared",
     "client: the text is for one client, so caches must not share the page. shared: the text is "
     "for everybody."},
    {"Position", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, position), "head-end", 0,
     0, "head-end|body-start|body-end", "The place in the page where the text is inserted."},
    {"CacheTtl", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, cache_ttl), "0", 0,
     86400000, NULL, "How long an answer of the helper is reused. 0 means never."},
    {"SendUrl", SERVICE_OPTION_SWITCH, offsetof(struct inject_settings, send_url), "off", 0, 0,
     NULL,
     "Whether the helper gets the URL of the page. Its answers then apply to this page only."},
    {"Csp", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, csp), "refuse", 0, 0,
     "refuse|nonce|hash|insert",
     "What happens to a text with scripts or styles when the policy of the page forbids them. "
     "refuse: it is not inserted. nonce: it is inserted with the nonce of the page in place of "
     "%{nonce}. hash: the hashes of its scripts and styles are added to the policy. insert: it is "
     "inserted unchanged."},
    {"ScanLimit", SERVICE_OPTION_SIZE, offsetof(struct inject_settings, scan_limit), "1M", 1024,
     UINT64_C(1) << 40, NULL, "How many bytes of a page are searched for the place."},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct inject_settings, types),
     "text/html application/xhtml+xml", 0, 0, NULL, "Content types that count as pages."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

const char *const inject_counters[] = {"INSERTED",      "NO PLACE FOUND", "HELPER TOO LATE",
                                       "HELPER FAILED", "POLICY FORBIDS", NULL};

uint64_t inject_settings_choice(struct slice arguments, const char *name, uint64_t otherwise) {
    const struct service_option *option = inject_options;
    struct slice text;
    char error[200];
    uint64_t choices[sizeof(struct inject_settings) / sizeof(uint64_t) + 1];
    while (strcasecmp(option->name, name) != 0)
        option++;
    if (!service_argument(arguments, slice_from(name), &text) ||
        !service_option_set(option, choices, text, error, sizeof error))
        return otherwise;
    return choices[option->offset / sizeof(uint64_t)];
}
