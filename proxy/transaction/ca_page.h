/*
 * The page that gives clients the certificate of the proxy's authority, if the settings have
 * `interception { ca_page = true }`: http://retort.internal/ca
 *
 *     struct ca_page page;
 *     if (ca_page_find(&page, settings, url_path(&transaction->request.url), arena)) ...
 *
 *     /ca                    how to install it, and links to the two files
 *     /ca/retort-ca.crt      the certificate in PEM
 *     /ca/retort-ca.der      the certificate in DER
 *
 * transaction/internal.c sends the page of an error_page section with for = authority in place of
 * the first one.
 *
 * The key is nowhere near it: the page is made from the certificate alone.
 *
 * Threads: the worker's. Memory: the arena's.
 */
#ifndef RETORT_TRANSACTION_CA_PAGE_H
#define RETORT_TRANSACTION_CA_PAGE_H

#include "base/arena.h"
#include "settings/settings.h"

struct ca_page {
    struct slice type, body;
    bool is_text; /* the page for people, which an error_page section may replace */
};

/* False: there is no such page. */
bool ca_page_find(struct ca_page *page, const struct settings *settings, struct slice path,
                  struct arena *arena);
/* What a variable of such a section stands for; base NULL: it is none of the authority's. `arg` is a
 * struct ca_page_names. */
struct ca_page_names {
    const struct settings *settings;
    struct arena *arena;
};
struct slice ca_page_value(void *arg, enum variable variable);

#endif
