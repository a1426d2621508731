/*
 * The page that gives clients the certificate of the proxy's authority, if the settings have
 * `interception { ca_page = true }`: http://retort.internal/ca
 *
 *     /ca                    how to install it, and links to the two files; or the page of an
 *                            error_page section with for = authority
 *     /ca/retort-ca.crt      the certificate in PEM
 *     /ca/retort-ca.der      the certificate in DER
 *
 * The key is nowhere near it: the page is made from the certificate alone.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_INTERCEPT_CA_PAGE_H
#define RETORT_INTERCEPT_CA_PAGE_H

#include "base/slice.h"

struct transaction;

/* As part.worker.answer_internal. */
bool ca_page_answer(struct transaction *transaction, struct slice path);

#endif
