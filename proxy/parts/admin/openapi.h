/*
 * The description of the pages, made from their table (admin/call.h): for programs as OpenAPI
 * 3.0, and for people as text.
 *
 *     openapi_make(&page, &calls);             GET /v1/openapi.json
 *     openapi_help(&page, &calls);             GET /v1/help
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_OPENAPI_H
#define RETORT_ADMIN_OPENAPI_H

#include "admin/page.h"

void openapi_make(struct page *page, const struct admin_calls *calls);
void openapi_help(struct page *page, const struct admin_calls *calls);

#endif
