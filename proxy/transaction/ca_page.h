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
};

/* False: there is no such page. */
bool ca_page_find(struct ca_page *page, const struct settings *settings, struct slice path,
                  struct arena *arena);

#endif
