#include "pages/error_page.h"

#include "base/assert.h"
#include "http/preference.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

struct page_writer {
    struct transaction *transaction;
    const struct page_choice *choice;
};

static struct slice page_variable(void *arg, enum variable variable, struct slice field) {
    const struct page_writer *writer = arg;
    struct arena *arena = &writer->transaction->arena;
    unsigned status = writer->choice->status;
    switch (variable) {
    case VARIABLE_ERROR: return writer->choice->sentence;
    case VARIABLE_STATUS: return slice_of_number(arena_alloc(arena, SLICE_DIGITS), status);
    case VARIABLE_REASON: return slice_from(http_reason(status));
    default: return transaction_variable(writer->transaction, variable, field);
    }
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
    return page->purpose == PAGE_FOR_ERROR && page->name == NULL &&
           error_page_is_for(page, choice->status);
}

static const struct error_page_settings *page_by_name(const struct pages_settings *pages,
                                                      const char *name) {
    for (size_t i = 0; i < pages->error_page_count; i++)
        if (pages->error_pages[i].name != NULL && strcmp(pages->error_pages[i].name, name) == 0)
            return &pages->error_pages[i];
    return NULL;
}

/* A request whose URL could not be read belongs to no class but `all`. */
static const struct error_page_settings *page_without_url(const struct pages_settings *pages,
                                                          const struct page_choice *choice) {
    for (size_t i = 0; i < pages->error_page_count; i++)
        if (page_suits(&pages->error_pages[i], choice) &&
            strcmp(url_class_name(pages->error_pages[i].url_class), "all") == 0)
            return &pages->error_pages[i];
    return NULL;
}

/* The first section that matches and suits: `choice`, or NULL, the purpose. */
static const struct error_page_settings *page_by_class(struct transaction *transaction,
                                                       const struct page_choice *choice,
                                                       enum page_purpose purpose) {
    const struct settings *settings = transaction->settings;
    const struct error_page_settings *pages = pages_settings_of(settings)->error_pages;
    const uint64_t *bits = request_rules_without_type(transaction);
    size_t count = settings->rule_count[RULE_ERROR_PAGE];
    for (size_t i = settings_next_rule(settings, RULE_ERROR_PAGE, bits, 0); i < count;
         i = settings_next_rule(settings, RULE_ERROR_PAGE, bits, i + 1))
        if (choice != NULL ? page_suits(&pages[i], choice) : pages[i].purpose == purpose)
            return &pages[i];
    return NULL;
}

static const struct error_page_settings *page_find(struct transaction *transaction,
                                                   const struct page_choice *choice) {
    const struct pages_settings *pages = pages_settings_of(transaction->settings);
    if (pages->error_page_count == 0)
        return NULL;
    if (choice->name != NULL)
        return page_by_name(pages, choice->name);
    if (transaction->request.url_text.length == 0)
        return page_without_url(pages, choice);
    return page_by_class(transaction, choice, PAGE_FOR_ERROR);
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

struct http_head *pages_reply(struct transaction *transaction, const struct page_choice *choice) {
    static const enum text_escape escapes[PAGE_TYPES] = {
        [PAGE_HTML] = TEXT_HTML, [PAGE_JSON] = TEXT_JSON, [PAGE_TEXT] = TEXT_AS_IS};
    struct arena *arena = &transaction->arena;
    const struct http_head *request = transaction->request.head;
    struct slice languages = http_head_joined_text(request, SLICE("Accept-Language"), arena);
    struct slice content_type;
    enum page_type type =
        preferred_type(http_head_joined_text(request, SLICE("Accept"), arena), &content_type);
    const struct error_page_settings *page = page_find(transaction, choice);
    const struct error_page_file *file =
        page != NULL ? error_page_find(page, type, languages) : NULL;
    bool by_language = file != NULL && error_page_has_languages(page, type);
    if (file == NULL)
        file =
            error_page_find(&pages_settings_of(transaction->settings)->own_pages, type, languages);
    ASSERT(file != NULL);
    struct page_writer writer = {.transaction = transaction, .choice = choice};
    struct slice text =
        text_template_write(file->text, page_variable, &writer, escapes[type], &transaction->arena);
    struct http_head *head =
        delivery_make_typed_page(transaction, RESULT_ERROR, choice->status, content_type, text);
    add_page_fields(head, type, by_language, file);
    return head;
}

/* Pages that are no errors. */

struct text_writer {
    struct transaction *transaction;
    const struct page_text *page;
};

static struct slice text_variable(void *arg, enum variable variable, struct slice field) {
    const struct text_writer *writer = arg;
    struct slice value = writer->page->value(writer->page->arg, variable);
    return value.base != NULL ? value : transaction_variable(writer->transaction, variable, field);
}

bool pages_write(struct transaction *transaction, struct page_text *page) {
    struct arena *arena = &transaction->arena;
    const struct error_page_settings *section = NULL;
    if (pages_settings_of(transaction->settings)->error_page_count > 0)
        section = page_by_class(transaction, NULL, page->purpose);
    if (section == NULL)
        return false;
    struct slice languages =
        http_head_joined_text(transaction->request.head, SLICE("Accept-Language"), arena);
    const struct error_page_file *file = error_page_find(section, PAGE_HTML, languages);
    ASSERT(file != NULL); /* such a section has HTML files only, and one at least */
    struct text_writer writer = {transaction, page};
    page->body = text_template_write(file->text, text_variable, &writer, TEXT_HTML, arena);
    page->language = file->language;
    page->by_language = error_page_has_languages(section, PAGE_HTML);
    return true;
}
