#include "transaction/page.h"

#include "base/assert.h"
#include "http/preference.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

struct page_writer {
    struct transaction *transaction;
    const struct page_choice *choice;
};

static struct slice page_variable(void *arg, enum variable variable) {
    const struct page_writer *writer = arg;
    struct arena *arena = &writer->transaction->arena;
    unsigned status = writer->choice->status;
    switch (variable) {
    case VARIABLE_ERROR: return writer->choice->sentence;
    case VARIABLE_STATUS: return slice_of_number(arena_alloc(arena, SLICE_DIGITS), status);
    case VARIABLE_REASON: return slice_from(http_reason(status));
    default: return transaction_variable(writer->transaction, variable);
    }
}

/* All values of a field. */
static struct slice joined_field(struct transaction *transaction, struct slice name) {
    const struct http_head *head = transaction->request.head;
    struct slice value = slice_make("", 0);
    for (unsigned i = 0; i < head->field_count; i++)
        if (slice_equal_nocase(head->fields[i].name, name))
            value = value.length == 0 ? head->fields[i].value
                                      : arena_concat(&transaction->arena, value, SLICE(","),
                                                     head->fields[i].value);
    return value;
}

/* The type that the client prefers. HTML where it prefers none: most clients that are no browsers
 * take any. */
static enum page_type preferred_type(struct slice accept, struct slice *content_type) {
    static const struct {
        struct slice name, content_type;
        enum page_type type;
    } types[] = {
        {{"text/html", sizeof "text/html" - 1},
         {"text/html; charset=utf-8", sizeof "text/html; charset=utf-8" - 1},
         PAGE_HTML},
        {{"application/problem+json", sizeof "application/problem+json" - 1},
         {"application/problem+json", sizeof "application/problem+json" - 1},
         PAGE_JSON},
        {{"application/json", sizeof "application/json" - 1},
         {"application/json", sizeof "application/json" - 1},
         PAGE_JSON},
        {{"text/plain", sizeof "text/plain" - 1},
         {"text/plain; charset=utf-8", sizeof "text/plain; charset=utf-8" - 1},
         PAGE_TEXT},
    };
    struct preference best = preference_of_type(accept, types[0].name);
    size_t chosen = 0;
    for (size_t i = 1; i < sizeof types / sizeof types[0]; i++) {
        struct preference preference = preference_of_type(accept, types[i].name);
        if (!preference_is_better(preference, best))
            continue;
        best = preference;
        chosen = i;
    }
    *content_type = types[chosen].content_type;
    return types[chosen].type;
}

static bool page_suits(const struct error_page_settings *page, const struct page_choice *choice) {
    return page->name == NULL && error_page_is_for(page, choice->status);
}

static const struct error_page_settings *page_by_name(const struct settings *settings,
                                                      const char *name) {
    for (size_t i = 0; i < settings->error_page_count; i++)
        if (settings->error_pages[i].name != NULL &&
            strcmp(settings->error_pages[i].name, name) == 0)
            return &settings->error_pages[i];
    return NULL;
}

/* A request whose URL could not be read belongs to no class but `all`. */
static const struct error_page_settings *page_without_url(const struct settings *settings,
                                                          const struct page_choice *choice) {
    for (size_t i = 0; i < settings->error_page_count; i++)
        if (page_suits(&settings->error_pages[i], choice) &&
            strcmp(url_class_name(settings->error_pages[i].url_class), "all") == 0)
            return &settings->error_pages[i];
    return NULL;
}

static const struct error_page_settings *page_by_class(struct transaction *transaction,
                                                       const struct page_choice *choice) {
    const struct settings *settings = transaction->settings;
    const uint64_t *bits = request_rules_without_type(transaction);
    size_t count = settings->rule_count[RULE_ERROR_PAGE];
    for (size_t i = settings_next_rule(settings, RULE_ERROR_PAGE, bits, 0); i < count;
         i = settings_next_rule(settings, RULE_ERROR_PAGE, bits, i + 1))
        if (page_suits(&settings->error_pages[i], choice))
            return &settings->error_pages[i];
    return NULL;
}

static const struct error_page_settings *page_find(struct transaction *transaction,
                                                   const struct page_choice *choice) {
    const struct settings *settings = transaction->settings;
    if (settings->error_page_count == 0)
        return NULL;
    if (choice->name != NULL)
        return page_by_name(settings, choice->name);
    if (transaction->request.url_text.length == 0)
        return page_without_url(settings, choice);
    return page_by_class(transaction, choice);
}

static void add_page_fields(struct http_head *head, enum page_type type, bool by_language,
                            const struct error_page_file *file) {
    http_head_add(head, SLICE("Vary"),
                  by_language ? SLICE("Accept, Accept-Language") : SLICE("Accept"));
    if (file->language != NULL)
        http_head_add(head, SLICE("Content-Language"), slice_from(file->language));
    if (type != PAGE_HTML)
        http_head_add(head, SLICE("X-Content-Type-Options"), SLICE("nosniff"));
}

struct http_head *page_reply(struct transaction *transaction, const struct page_choice *choice) {
    static const enum text_escape escapes[PAGE_TYPES] = {
        [PAGE_HTML] = TEXT_HTML, [PAGE_JSON] = TEXT_JSON, [PAGE_TEXT] = TEXT_AS_IS};
    struct slice languages = joined_field(transaction, SLICE("Accept-Language"));
    struct slice content_type;
    enum page_type type = preferred_type(joined_field(transaction, SLICE("Accept")), &content_type);
    const struct error_page_settings *page = page_find(transaction, choice);
    const struct error_page_file *file =
        page != NULL ? error_page_find(page, type, languages) : NULL;
    bool by_language = file != NULL && error_page_has_languages(page, type);
    if (file == NULL)
        file = error_page_find(&transaction->settings->own_pages, type, languages);
    ASSERT(file != NULL);
    struct page_writer writer = {.transaction = transaction, .choice = choice};
    struct slice text =
        text_template_write(file->text, page_variable, &writer, escapes[type], &transaction->arena);
    struct http_head *head =
        delivery_make_typed_page(transaction, RESULT_ERROR, choice->status, content_type, text);
    add_page_fields(head, type, by_language, file);
    return head;
}
