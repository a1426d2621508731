/* Who may do what: access sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "base/log.h"
#include "part.h"
#include "settings/class_warnings.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The options that only some actions use. */
static const struct {
    const char *option;
    enum access_action action;
} access_belongs[] = {
    {"page", ACCESS_ACTION_DENY},
    {"with", ACCESS_ACTION_AUTHENTICATE},
    {"realm", ACCESS_ACTION_AUTHENTICATE},
    {"to", ACCESS_ACTION_REDIRECT},
};

static const char *action_word(enum access_action action) {
    return options_find(settings_table(), "access", "action")->words[action];
}

static bool check_access_options(struct load *load, const struct document_section *section,
                                 const struct access_settings *access) {
    for (size_t i = 0; i < sizeof access_belongs / sizeof access_belongs[0]; i++)
        if (access_belongs[i].action != access->action &&
            document_value(section, access_belongs[i].option) != NULL)
            return load_fail(load, load_line_of(section, access_belongs[i].option),
                             "%s works only with action = %s, and this section has action = %s; "
                             "remove one of the two",
                             access_belongs[i].option, action_word(access_belongs[i].action),
                             action_word(access->action));
    if ((access->asks & CLASS_ASKS_TYPE) != 0)
        return load_fail(load, section->line,
                         "access: class \"%s\" has a content_type, which is known only when the "
                         "response is there; use a class without it",
                         section->title);
    return true;
}

static bool is_redirect_status(unsigned status) {
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static bool check_access_status(struct load *load, const struct document_section *section,
                                struct access_settings *access) {
    bool redirects = access->action == ACCESS_ACTION_REDIRECT;
    int line = load_line_of(section, "status");
    if (access->status != 0 && !redirects && access->action != ACCESS_ACTION_DENY)
        return load_fail(load, line,
                         "status works only with action = deny and action = redirect; remove it");
    if (access->status == 0)
        access->status = redirects ? 302 : 403;
    if (redirects && !is_redirect_status(access->status))
        return load_fail(load, line, "status: write 301, 302, 303, 307 or 308 with redirect");
    if (!redirects && (access->status < 400 || access->status == 401 || access->status == 407))
        return load_fail(load, line,
                         "status: write a number from 400 to 599 with deny; 401 and 407 belong to "
                         "action = authenticate");
    return true;
}

static bool load_access_target(struct load *load, const struct document_section *section,
                               struct access_settings *access) {
    char error[500];
    int line = load_line_of(section, "to");
    if (access->action != ACCESS_ACTION_REDIRECT)
        return true;
    if (access->to == NULL)
        return load_fail(load, section->line,
                         "access: action = redirect needs the URL; write to = \"https://...\"");
    access->to_template = text_template_new(access->to, error, sizeof error);
    if (access->to_template == NULL)
        return load_fail(load, line, "to: %s", error);
    if (strncmp(access->to, "http://", 7) != 0 && strncmp(access->to, "https://", 8) != 0 &&
        (access->to[0] != '/' || access->to[1] == '/'))
        return load_fail(load, line,
                         "to: \"%s\" must begin with http://, https:// or one slash, so that no "
                         "client can choose the server",
                         access->to);
    return true;
}

/* The place of the authenticator; authenticator_count: there is none with that name. */
static unsigned find_authenticator(const struct settings *settings, const char *name) {
    unsigned at = 0;
    while (at < settings->authenticator_count && strcmp(settings->authenticators[at], name) != 0)
        at++;
    return at;
}

static bool load_access_authenticators(struct load *load, const struct document_section *section,
                                       struct access_settings *access) {
    const struct settings *settings = load->settings;
    int line = load_line_of(section, "with");
    if (access->action != ACCESS_ACTION_AUTHENTICATE)
        return true;
    if (settings->authenticator_count == 0)
        return load_fail(load, section->line,
                         "access: action = authenticate needs an authenticator section; add one");
    access->authenticators = xcalloc(settings->authenticator_count + section->value_count,
                                     sizeof *access->authenticators);
    for (unsigned i = 0; access->with == NULL && i < settings->authenticator_count; i++)
        access->authenticators[access->authenticator_count++] = i;
    for (char **name = access->with; name != NULL && *name != NULL; name++) {
        unsigned found = find_authenticator(settings, *name);
        if (found == settings->authenticator_count)
            return load_fail(load, line,
                             "with: there is no authenticator \"%s\"; add one or correct the name",
                             *name);
        access->authenticators[access->authenticator_count++] = found;
    }
    return true;
}

static bool names_method(const struct access_settings *access, const char *method) {
    char **methods = url_class_conditions(access->url_class)->methods;
    for (; methods != NULL && *methods != NULL; methods++)
        if (strcmp(*methods, method) == 0)
            return true;
    return false;
}

static bool apply_access(struct load *load, const struct document_section *section,
                         struct access_settings *access) {
    if (!load_section_class(load, section, &access->url_class) ||
        !load_values(load, section, "access", access))
        return false;
    access->asks = url_class_asks(access->url_class);
    access->at = (uint32_t)(access - load->settings->accesses);
    access->purges = names_method(access, "PURGE");
    access->bans = names_method(access, "BAN");
    return check_access_options(load, section, access) &&
           check_access_status(load, section, access) &&
           load_access_target(load, section, access) &&
           load_access_authenticators(load, section, access);
}

/* The cost of a count is that of a line of the cache that no other worker writes. */
static void make_counts(struct settings *settings) {
    enum { LINE = 64 / sizeof(struct access_count) };
    settings->access_count_stride = (settings->access_count + LINE) / LINE * LINE;
    settings->access_counts =
        xcalloc(ACCESS_COUNTERS * settings->access_count_stride, sizeof(struct access_count));
    settings->access_counted_since = time(NULL);
}

/* So that only sections are looked at that may matter, however many there are. */
static void make_access_bits(struct settings *settings) {
    size_t words = settings->access_count / 64 + 1;
    settings->access_asking = xcalloc(words, sizeof *settings->access_asking);
    for (size_t i = 0; i < settings->access_count; i++) {
        const struct access_settings *access = &settings->accesses[i];
        if (access->action == ACCESS_ACTION_AUTHENTICATE && !access->log_only)
            settings->access_asking[i / 64] |= UINT64_C(1) << i % 64;
    }
}

bool load_accesses(struct load *load) {
    struct settings *settings = load->settings;
    size_t count = document_section_count(load->document, "access");
    settings->accesses = xcalloc(count + 1, sizeof *settings->accesses);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "access") {
        struct access_settings *access = &settings->accesses[settings->access_count++];
        if (!apply_access(load, section, access))
            return false;
        settings->access_asks_later |= (access->asks & CLASS_ASKS_LATER) != 0;
        settings->access_asks_destination |= (access->asks & CLASS_ASKS_DESTINATION) != 0;
        bool lets_in = (access->action == ACCESS_ACTION_ALLOW ||
                        access->action == ACCESS_ACTION_AUTHENTICATE) &&
                       !access->log_only;
        settings->access_names_servers |= (access->asks & CLASS_ASKS_SERVER) != 0;
        settings->access_asks_who |= (access->asks & CLASS_ASKS_WHO) != 0;
        settings->access_logs_only |= access->log_only;
        settings->access_purges |= lets_in && (access->purges || access->bans);
    }
    make_counts(settings);
    make_access_bits(settings);
    return true;
}

static bool access_ends(const struct settings *settings, size_t at) {
    return !settings->accesses[at].log_only;
}

static void note_otherwise(struct settings *settings) {
    if (settings->access_asks_later)
        return;
    settings->access_always = rules_always(settings->rules);
    size_t at = settings_next_rule(settings, RULE_ACCESS, settings->access_always, 0);
    if (at < settings->access_count && settings->accesses[at].action == ACCESS_ACTION_ALLOW)
        settings->access_otherwise = &settings->accesses[at];
}

/* Who could ask for another server by TLS than by CONNECT is let in where one of both is. */
static void warn_about_names(const struct load *load) {
    if (load->settings->access_names_servers &&
        part_table[part_of_option("intercept", NULL)] == NULL)
        load_warn(
            load, document_section(load->document, "access", NULL)->line,
            "access: the names that clients ask for in TLS are not looked at: this retort was "
            "built without the part %s",
            part_name(part_of_option("intercept", NULL)));
}

void finish_accesses(const struct load *load) {
    struct settings *settings = load->settings;
    warn_about_names(load);
    class_warnings_shadowed(load, RULE_ACCESS, access_ends);
    unsigned asks = rules_ask(settings->rules) | settings->asks_of_parts;
    for (int i = 0; i < RULE_KINDS; i++)
        for (size_t at = 0; i != RULE_ACCESS && at < settings->rule_count[i]; at++)
            settings->others_ask_destination |=
                (url_class_asks(rule_kind_class(settings, (enum rule_kind)i, at)) &
                 CLASS_ASKS_DESTINATION) != 0;
    settings->any_access = settings->access_count > 0 || (asks & CLASS_ASKS_LATER) != 0;
    settings->access_is_plain = settings->access_count > 0 &&
                                (asks & CLASS_ASKS_DESTINATION) == 0 &&
                                settings->authenticator_count == 0 && !settings->access_logs_only &&
                                !settings->access_purges;
    note_otherwise(settings);
}

void release_accesses(struct settings *settings) {
    for (size_t i = 0; i < settings->access_count; i++) {
        text_template_free(&settings->accesses[i].to_template);
        free(settings->accesses[i].authenticators);
        load_release_values("access", &settings->accesses[i]);
    }
    free(settings->accesses);
    free(settings->access_counts);
    free(settings->access_asking);
}
