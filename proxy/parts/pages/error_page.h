/*
 * error_page sections: the pages that clients get in place of what they asked for, in the type and language that they
 * prefer (RFC 9110 §12.5.1, §12.5.4). Retort's own pages are HTML, plain text, and JSON as RFC 9457 wants it. The files are
 * read and compiled when the settings are loaded, so that a request opens none.
 *
 *     const struct error_page_settings *page = &pages_settings_of(settings)->error_pages[i];
 *     if (error_page_is_for(page, 403)) ...
 *     const struct error_page_file *file = error_page_find(page, PAGE_HTML, SLICE("de, en;q=0.5"));
 *
 * Threads: read-only once the settings are loaded.
 */
#ifndef RETORT_PAGES_ERROR_PAGE_H
#define RETORT_PAGES_ERROR_PAGE_H

#include "base/slice.h"
#include "match/url_class.h"
#include "settings/settings.h"
#include "text/text_template.h"
#include "transaction/page.h"

enum { ERROR_PAGE_STATUS_FIRST = 400, ERROR_PAGE_STATUSES = 200 };

enum page_type { PAGE_HTML, PAGE_JSON, PAGE_TEXT, PAGE_TYPES };

struct error_page_file {
    enum page_type type;
    char *language; /* a tag, as in the file's path; NULL: not known */
    struct text_template *text;
};

struct error_page_settings {
    const struct url_class *url_class;
    enum page_purpose purpose;
    char *name;          /* a page that access sections choose; NULL: statuses choose it */
    char **status_texts; /* "403", "5xx"; ends with NULL; NULL: all errors */
    bool statuses[ERROR_PAGE_STATUSES];
    char **paths;   /* as configured */
    char *language; /* for clients that prefer none of those there are; NULL: the first file's */
    struct error_page_file *files; /* those of the default language first */
    size_t file_count;
};

struct pages_settings {
    struct error_page_settings *error_pages; /* in the file's order */
    size_t error_page_count;
    struct error_page_settings own_pages; /* where no section says anything; a file of each type */
    struct {
        char *file, *proxy;
        char **direct;
        char *text; /* what browsers get; NULL: there is no pac section */
    } pac;
};

static inline const struct pages_settings *pages_settings_of(const struct settings *settings) {
    return settings->parts[PART_PAGES];
}

extern const struct part_settings pages_part_settings;

/* See transaction/page.h. Everything that comes from a request is escaped for the place where it is written. */
struct http_head *pages_reply(struct transaction *transaction, const struct page_choice *choice);
bool pages_write(struct transaction *transaction, struct page_text *page);

bool error_page_is_for(const struct error_page_settings *page, unsigned status);
/* The file for a client that wants this type and sends this Accept-Language; NULL: there is none of
 * the type. */
const struct error_page_file *error_page_find(const struct error_page_settings *page,
                                              enum page_type type, struct slice accept_language);
/* Does the answer depend on Accept-Language? */
bool error_page_has_languages(const struct error_page_settings *page, enum page_type type);

#endif
