/* Who may do what: access sections. */
#include "access/settings.h"

#include "base/assert.h"
#include "match/class_conditions.h"
#include "settings/class_warnings.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const access_action_words[] = {"allow",    "deny",   "authenticate",
                                                  "redirect", "tunnel", NULL};

#define ACCESS(member) ONE("access", struct access_settings, member)

static const struct option rows[] = {
#include "access/options.def"
    {.name = NULL},
};

/* Classes are the core's, but who asks for the address of a host is the step ACCESS. */
#define CONDITION(member) ONE("url_class", struct url_class_conditions, member)

static const struct option core_rows[] = {
    {CONDITION(destinations), .name = "destination", .after = "scheme", STRINGS,
     .check = url_class_check_client,
     DOC "Lists addresses and networks of servers. The host of the URL is resolved for it, and the "
         "condition matches when one of its addresses is in one of the networks.",
     .example = "{ \"192.0.2.0/24\", \"2001:db8::/32\" }"},
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "access",
        .after = "url_class",
        .title = "CLASS",
        .repeats = true,
        .documentation =
            "Sets what happens to the requests of a URL class. The first section in the file whose "
            "class matches decides. As soon as there is an access section, a request that none "
            "matches is denied. Without access sections, every client that a listener takes "
            "(listen.allow) may ask for everything that its reach allows "
            "(listen.local_destinations). The sections decide before services and the cache see "
            "the request, and again when a service has changed it. Addresses of hosts "
            "(url_class.destination) are judged when a connection is made to them. See "
            "docs/ACCESS.md.",
        .example = "url_class inside { client = { \"10.0.0.0/8\" } }\n"
                   "access inside { action = allow }\n"
                   "access all { action = deny }",
    },
    {.name = NULL},
};

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

static bool check_access_options(struct load *load, const struct document_section *section,
                                 const struct access_settings *access) {
    for (size_t i = 0; i < sizeof access_belongs / sizeof access_belongs[0]; i++)
        if (access_belongs[i].action != access->action &&
            document_value(section, access_belongs[i].option) != NULL)
            return load_fail(load, load_line_of(section, access_belongs[i].option),
                             "%s works only with action = %s, and this section has action = %s; "
                             "remove one of the two",
                             access_belongs[i].option,
                             access_action_words[access_belongs[i].action],
                             access_action_words[access->action]);
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

/* Is there an error_page section with that name? */
static bool access_has_page(const struct load *load, const char *name) {
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "error_page")
        for (size_t i = 0; i < section->value_count; i++)
            if (strcmp(section->values[i].option->name, "name") == 0 &&
                strcmp(section->values[i].text, name) == 0)
                return true;
    return false;
}

static bool check_access_page(struct load *load, const struct document_section *section,
                              const struct access_settings *access) {
    return access->page == NULL || access_has_page(load, access->page) ||
           load_fail(
               load, load_line_of(section, "page"),
               "page: no error_page section has the name \"%s\"; add one, or correct the name",
               access->page);
}

static bool apply_access(struct load *load, const struct document_section *section,
                         struct access_settings *access) {
    if (!load_section_class(load, section, &access->url_class) ||
        !load_values(load, section, "access", access))
        return false;
    access->asks = url_class_asks(access->url_class);
    access->purges = names_method(access, "PURGE");
    access->bans = names_method(access, "BAN");
    return check_access_options(load, section, access) &&
           check_access_status(load, section, access) &&
           load_access_target(load, section, access) &&
           load_access_authenticators(load, section, access) &&
           check_access_page(load, section, access);
}

/* The cost of a count is that of a line of the cache that no other worker writes. */
static void make_counts(struct accesses_settings *mine) {
    enum { LINE = 64 / sizeof(struct access_count) };
    size_t stride = (mine->count + LINE) / LINE * LINE;
    mine->counts = xcalloc(ACCESS_COUNTERS * stride, sizeof *mine->counts);
    mine->counted_since = time(NULL);
    for (size_t i = 0; i < mine->count; i++) {
        mine->list[i].counts = &mine->counts[i];
        mine->list[i].stride = stride;
    }
}

/* So that only sections are looked at that may matter, however many there are. */
static void make_access_bits(struct accesses_settings *mine) {
    mine->asking = xcalloc(mine->count / 64 + 1, sizeof *mine->asking);
    for (size_t i = 0; i < mine->count; i++)
        if (mine->list[i].action == ACCESS_ACTION_AUTHENTICATE && !mine->list[i].log_only)
            mine->asking[i / 64] |= UINT64_C(1) << i % 64;
}

static void note_access(struct accesses_settings *mine, struct settings *settings,
                        const struct access_settings *access) {
    bool lets_in =
        (access->action == ACCESS_ACTION_ALLOW || access->action == ACCESS_ACTION_AUTHENTICATE) &&
        !access->log_only;
    mine->asks_later |= (access->asks & CLASS_ASKS_LATER) != 0;
    mine->asks_destination |= (access->asks & CLASS_ASKS_DESTINATION) != 0;
    mine->logs_only |= access->log_only;
    mine->purges |= lets_in && (access->purges || access->bans);
    settings->access_names_servers |= (access->asks & CLASS_ASKS_SERVER) != 0;
    settings->access_asks_who |= (access->asks & CLASS_ASKS_WHO) != 0;
}

static bool accesses_load(struct load *load, void *into) {
    struct accesses_settings *mine = into;
    mine->list = xcalloc(document_section_count(load->document, "access") + 1, sizeof *mine->list);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "access") {
        struct access_settings *access = &mine->list[mine->count++];
        if (!apply_access(load, section, access))
            return false;
        note_access(mine, load->settings, access);
    }
    make_counts(mine);
    make_access_bits(mine);
    return true;
}

static void add_perhaps(struct rules *rules, size_t first, void *into) {
    struct accesses_settings *mine = into;
    mine->perhaps_first = first;
    for (size_t i = 0; mine->asks_later && i < mine->count; i++) {
        bool later = (mine->list[i].asks & CLASS_ASKS_LATER) != 0;
        rules_add_perhaps(rules, later ? mine->list[i].url_class : NULL);
    }
}

static bool access_ends(const struct settings *settings, size_t at) {
    return !accesses_of(settings)->list[at].log_only;
}

static void note_otherwise(const struct settings *settings, struct accesses_settings *mine) {
    if (mine->asks_later)
        return;
    mine->always = rules_always(settings->rules);
    size_t at = settings_next_rule(settings, RULE_ACCESS, mine->always, 0);
    if (at < mine->count && mine->list[at].action == ACCESS_ACTION_ALLOW)
        mine->otherwise = &mine->list[at];
}

/* Who could ask for another server by TLS than by CONNECT is let in where one of both is. */
static void warn_about_names(const struct load *load) {
    if (load->settings->access_names_servers && part_table[PART_INTERCEPT] == NULL)
        load_warn(
            load, document_section(load->document, "access", NULL)->line,
            "access: the names that clients ask for in TLS are not looked at: this retort was "
            "built without the part %s",
            part_name(PART_INTERCEPT));
}

static void accesses_finish(const struct load *load, void *into) {
    struct accesses_settings *mine = into;
    const struct settings *settings = load->settings;
    warn_about_names(load);
    class_warnings_shadowed(load, RULE_ACCESS, access_ends);
    unsigned asks = rules_ask(settings->rules) | settings->asks_of_parts;
    for (int i = 0; i < RULE_KINDS; i++)
        for (size_t at = 0; i != RULE_ACCESS && at < settings->rule_count[i]; at++)
            mine->others_ask_destination |=
                (url_class_asks(rule_kind_class(settings, (enum rule_kind)i, at)) &
                 CLASS_ASKS_DESTINATION) != 0;
    mine->is_asked = mine->count > 0 || (asks & CLASS_ASKS_LATER) != 0;
    mine->is_plain = mine->count > 0 && (asks & CLASS_ASKS_DESTINATION) == 0 &&
                     settings->authenticator_count == 0 && !mine->logs_only && !mine->purges;
    note_otherwise(settings, mine);
}

static void accesses_release(void *from) {
    struct accesses_settings *mine = from;
    for (size_t i = 0; i < mine->count; i++) {
        text_template_free(&mine->list[i].to_template);
        free(mine->list[i].authenticators);
        load_release_values("access", &mine->list[i]);
    }
    free(mine->list);
    free(mine->counts);
    free(mine->asking);
}

static const struct section_place places[] = {
    {
        .section = "access",
        SECTION_LIST(struct accesses_settings, list, count, struct access_settings),
        SECTION_RULE(RULE_ACCESS, struct access_settings),
    },
    {.section = NULL},
};

const struct part_settings access_part_settings = {
    .options = rows,
    .core_options = core_rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct accesses_settings),
    .load_rules = accesses_load,
    .add_rules = add_perhaps,
    .finish = accesses_finish,
    .release = accesses_release,
};
