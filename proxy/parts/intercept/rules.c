#include "intercept/rules.h"

#include "http/url.h"

static struct slice url_of_host(const struct intercept_subject *subject, struct slice host,
                                struct arena *arena) {
    bool v6 = memchr(host.base, ':', host.length) != NULL;
    return subject->port == url_schemes[URL_HTTPS].port
               ? arena_printf(arena, "https://%s%.*s%s/", v6 ? "[" : "", SLICE_PRINT(host),
                              v6 ? "]" : "")
               : arena_printf(arena, "https://%s%.*s%s:%u/", v6 ? "[" : "", SLICE_PRINT(host),
                              v6 ? "]" : "", subject->port);
}

static enum intercept_action action_for(const struct interception_settings *settings,
                                        const struct intercept_subject *subject, struct slice host,
                                        struct arena *arena) {
    struct class_subject class_subject = *subject->connection;
    class_subject.method = SLICE("CONNECT");
    class_subject.host = host;
    class_subject.url = url_of_host(subject, host, arena);
    class_subject.path = SLICE("/");
    class_subject.port = subject->port;
    class_subject.sni = subject->name;
    const uint64_t *bits = rules_find(settings->rules, &class_subject, arena);
    size_t rule = rules_next(bits, 0, settings->count);
    return rule < settings->count ? settings->list[rule].action : INTERCEPT_SPLICE;
}

enum intercept_action intercept_rules_decide(const struct interception_settings *settings,
                                             const struct intercept_subject *subject,
                                             struct arena *arena) {
    if (subject->name.length == 0)
        return action_for(settings, subject, subject->host, arena);
    enum intercept_action action = action_for(settings, subject, subject->name, arena);
    if (subject->host_is_address || slice_equal(subject->name, subject->host))
        return action;
    enum intercept_action other = action_for(settings, subject, subject->host, arena);
    return other > action ? other : action;
}
