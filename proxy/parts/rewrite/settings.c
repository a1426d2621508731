/* Rules that change heads and URLs: request_headers, response_headers and rewrite sections. */
#include "rewrite/settings.h"

#include "base/assert.h"
#include "rewrite/field_rules.h"
#include "rewrite/head_rules.h"
#include "rewrite/url_rules.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <stdlib.h>
#include <string.h>

static const char *const fields_where_words[] = {"client", "origin", NULL};

#define REQUEST_FIELDS(member)  ONE("request_headers", struct fields_settings, member)
#define RESPONSE_FIELDS(member) ONE("response_headers", struct fields_settings, member)
#define REWRITE(member)         ONE("rewrite", struct rewrite_settings, member)

static const struct option rows[] = {
#include "rewrite/options.def"
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "request_headers",
        .after = "forwarding",
        .title = "CLASS",
        .repeats = true,
        .documentation =
            "Changes the fields of requests of a URL class. All sections that match apply, in the "
            "order of the file; in a section first remove, then replace, set and add. Several "
            "sections may have the same class. Fields that say how a message is sent can not be "
            "changed (Connection, Content-Length, Host, Via and others). CONNECT requests are left "
            "alone.",
        .example = "request_headers all { set = \"X-Client: %{client_ip}\"  remove = \"X-Debug-*\" "
                   "}",
    },
    {
        .name = "response_headers",
        .after = "request_headers",
        .title = "CLASS",
        .repeats = true,
        .documentation =
            "Changes the fields of responses to requests of a URL class, in the way of "
            "request_headers. The class may have a content_type. Interim responses (1xx), answers "
            "to CONNECT and trailers are left alone.",
        .example = "response_headers all { set = \"X-Content-Type-Options: nosniff\"\n"
                   "                       remove = { \"Server\", \"X-Powered-By\" } }",
    },
    {
        .name = "rewrite",
        .after = "response_headers",
        .title = "CLASS",
        .repeats = true,
        .documentation =
            "Rewrites the URLs of requests of a URL class, after access rules have let the request "
            "in and before services and the cache see it. The sections are tried once, in the "
            "order of the file, each with what the ones before it have made. Their classes are "
            "compared with the URL that the client asked for. Access rules decide again about the "
            "rewritten URL. CONNECT requests are left alone.",
        .example = "rewrite all { match = '^http://old\\.example/(.*)'  to = "
                   "\"https://new.example/$1\" }",
    },
    {.name = NULL},
};

/* A kind of section, and the options of it that are rules, in the order in which they apply. */
static const struct field_option {
    const char *name;
    enum field_action action;
} field_options[] = {
    {"remove", FIELD_REMOVE},
    {"replace", FIELD_REPLACE},
    {"set", FIELD_SET},
    {"add", FIELD_ADD},
};

static enum field_place place_of(bool of_requests, enum fields_where where) {
    if (!of_requests)
        return FIELD_OF_RESPONSE;
    return where == FIELDS_AT_CLIENT ? FIELD_OF_REQUEST : FIELD_OF_OUTGOING;
}

/* Compiles the values of one option. */
static bool compile_fields(struct load *load, const struct document_section *section,
                           const struct field_option *option, enum field_place place,
                           struct field_rules *rules) {
    char reason[600];
    for (size_t i = 0; i < section->value_count; i++) {
        const struct document_value *value = &section->values[i];
        if (strcmp(value->option->name, option->name) == 0 &&
            !field_rules_add(rules, option->action, place, value->text, reason, sizeof reason))
            return load_fail_value(load, value, ": ", reason);
    }
    return true;
}

static bool class_is_known_early(struct load *load, const struct document_section *section,
                                 const char *kind, const struct url_class *url_class) {
    if ((url_class_asks(url_class) & CLASS_ASKS_TYPE) == 0)
        return true;
    return load_fail(load, section->line,
                     "%s: class \"%s\" has a content_type, but a request is changed before there "
                     "is a response: use a class without it",
                     kind, section->title);
}

/* What the fields of a request tell about who asks, and what the URL does not tell. */
static void note_told(struct load *load, const struct document_section *section,
                      struct fields_settings *fields) {
    const unsigned known = CLASS_ASKS_TYPE | CLASS_ASKS_SERVER;
    unsigned asks = url_class_asks(fields->url_class);
    fields->tells_user = field_rules_tell_user(fields->rules);
    fields->tells_rule = field_rules_tell_rule(fields->rules);
    fields->tells_class = (asks & CLASS_ASKS_WHO) != 0;
    load->settings->any_told_class |= fields->tells_class;
    fields->is_by_url = (asks & ~known) == 0;
    if (fields->where == FIELDS_AT_ORIGIN && (fields->tells_user || fields->tells_class))
        load_tell(load, section->line,
                  "request_headers %s tells the origin who asks: a response is stored only if it "
                  "says public or s-maxage; with where = client, also if Vary names the field",
                  section->title);
}

static bool check_fields(struct load *load, const struct document_section *section,
                         const char *kind, bool of_requests, const struct fields_settings *fields) {
    if (fields->remove == NULL && fields->replace == NULL && fields->set == NULL &&
        fields->add == NULL)
        return load_fail(load, section->line,
                         "%s \"%s\" changes nothing; write, for example: remove = \"Referer\"",
                         kind, section->title);
    if (!of_requests && fields->where == FIELDS_AT_ORIGIN && field_rules_name_client(fields->rules))
        return load_fail(load, section->line,
                         "%s \"%s\": a variable stands for something of one client, but at where = "
                         "origin the cache stores what it says and gives it to other clients; "
                         "write where = client",
                         kind, section->title);
    if (!of_requests && fields->where == FIELDS_AT_ORIGIN &&
        (url_class_asks(fields->url_class) & CLASS_ASKS_CLIENTS_SIDE) != 0)
        return load_fail(
            load, section->line,
            "%s \"%s\": the class depends on who asks, or how, but at where = origin the cache "
            "stores what the section makes and gives it to other clients; write where "
            "= client",
            kind, section->title);
    if (fields->on_errors && fields->where != FIELDS_AT_CLIENT)
        return load_fail(load, load_line_of(section, "on_errors"),
                         "on_errors: pages of the proxy never pass where = origin; remove one of "
                         "the two");
    return true;
}

static bool apply_fields(struct load *load, const struct document_section *section,
                         const char *kind, bool of_requests, struct fields_settings *fields) {
    if (!load_section_class(load, section, &fields->url_class) ||
        !load_values(load, section, kind, fields) ||
        (of_requests && !class_is_known_early(load, section, kind, fields->url_class)))
        return false;
    enum field_place place = place_of(of_requests, fields->where);
    fields->rules = field_rules_new();
    for (size_t i = 0; i < sizeof field_options / sizeof *field_options; i++)
        if (!compile_fields(load, section, &field_options[i], place, fields->rules))
            return false;
    fields->name_fields = field_rules_name_fields(fields->rules);
    if (of_requests)
        note_told(load, section, fields);
    return check_fields(load, section, kind, of_requests, fields);
}

/* Notes where there are rules, so that nobody looks for them elsewhere. */
static bool note_fields(struct load *load, const char *kind, const struct fields_list *list,
                        bool any[FIELDS_PLACES]) {
    unsigned additions = 0;
    for (size_t i = 0; i < list->count; i++) {
        any[list->sections[i].where] = true;
        additions += field_rules_additions(list->sections[i].rules);
    }
    return additions <= FIELD_ADDITIONS_MAX ||
           load_fail(load, 0,
                     "the %s sections set and add %u fields together; a head has room for %u", kind,
                     additions, (unsigned)FIELD_ADDITIONS_MAX);
}

static bool load_fields(struct load *load, const char *kind, bool of_requests,
                        struct fields_list *list, bool any[FIELDS_PLACES]) {
    size_t i = 0;
    list->count = document_section_count(load->document, kind);
    list->sections = xcalloc(list->count + 1, sizeof *list->sections);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, kind)
        if (!apply_fields(load, section, kind, of_requests, &list->sections[i++]))
            return false;
    return note_fields(load, kind, list, any);
}

static bool apply_rewrite(struct load *load, const struct document_section *section,
                          struct rewrite_settings *rewrite) {
    char reason[600];
    if (!load_section_class(load, section, &rewrite->url_class) ||
        !load_values(load, section, "rewrite", rewrite) ||
        !class_is_known_early(load, section, "rewrite", rewrite->url_class))
        return false;
    rewrite->rule = url_rule_new(rewrite->match, rewrite->to, reason, sizeof reason);
    return rewrite->rule != NULL || load_fail(load, section->line, "rewrite: %s", reason);
}

static bool load_rewrites(struct load *load, struct rewriting_settings *mine) {
    size_t i = 0;
    mine->rewrite_count = document_section_count(load->document, "rewrite");
    mine->rewrites = xcalloc(mine->rewrite_count + 1, sizeof *mine->rewrites);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "rewrite")
        if (!apply_rewrite(load, section, &mine->rewrites[i++]))
            return false;
    return true;
}

static bool rewriting_load(struct load *load, void *into) {
    struct rewriting_settings *mine = into;
    struct settings *settings = load->settings;
    bool of_requests[FIELDS_PLACES] = {false}, of_responses[FIELDS_PLACES] = {false};
    if (!load_fields(load, "request_headers", true, &mine->requests, of_requests) ||
        !load_fields(load, "response_headers", false, &mine->responses, of_responses) ||
        !load_rewrites(load, mine))
        return false;
    mine->any_at_client = of_requests[FIELDS_AT_CLIENT];
    settings->any_rewrite = mine->rewrite_count > 0 || mine->any_at_client;
    settings->head_changes = &head_rules;
    settings->changes_outgoing = of_requests[FIELDS_AT_ORIGIN];
    settings->changes_responses = of_responses[FIELDS_AT_ORIGIN];
    settings->changes_replies = of_responses[FIELDS_AT_CLIENT];
    return true;
}

static void release_fields(const char *kind, const struct fields_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        field_rules_free(&list->sections[i].rules);
        load_release_values(kind, &list->sections[i]);
    }
    free(list->sections);
}

static void rewriting_release(void *from) {
    struct rewriting_settings *mine = from;
    release_fields("request_headers", &mine->requests);
    release_fields("response_headers", &mine->responses);
    for (size_t i = 0; i < mine->rewrite_count; i++) {
        url_rule_free(&mine->rewrites[i].rule);
        load_release_values("rewrite", &mine->rewrites[i]);
    }
    free(mine->rewrites);
}

#define FIELDS_PLACE(name, list, kind)                                                             \
    {                                                                                              \
        .section = name, .only_stated = true, SECTION_RULE(kind, struct fields_settings),          \
        SECTION_LIST(struct rewriting_settings, list.sections, list.count, struct fields_settings) \
    }

static const struct section_place places[] = {
    FIELDS_PLACE("request_headers", requests, RULE_REQUEST_HEADERS),
    FIELDS_PLACE("response_headers", responses, RULE_RESPONSE_HEADERS),
    {
        .section = "rewrite",
        SECTION_LIST(struct rewriting_settings, rewrites, rewrite_count, struct rewrite_settings),
        SECTION_RULE(RULE_REWRITE, struct rewrite_settings),
    },
    {.section = NULL},
};

const struct part_settings rewrite_part_settings = {
    .options = rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct rewriting_settings),
    .load_rules = rewriting_load,
    .release = rewriting_release,
};
