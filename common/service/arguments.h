/*
 * The arguments of a service: what stands behind the "?" in the URI by which a host calls it. They
 * let one service work differently for different classes of URLs, each of which the proxy sends to
 * a URI of its own:
 *
 *     icap://127.0.0.1:1344/gray?width=320&quality=60
 *
 *     struct slice text;
 *     uint64_t width;
 *     if (service_argument(exchange->arguments, SLICE("width"), &text)) ...          "320"
 *     if (service_argument_number(exchange->arguments, SLICE("width"), 1, 65535, &width)) ...
 *
 * The first of several of the same name counts. Names and values are taken as they stand, without
 * percent-decoding. An argument without "=" has an empty value. Threads: pure.
 */
#ifndef RETORT_SERVICE_ARGUMENTS_H
#define RETORT_SERVICE_ARGUMENTS_H

#include "base/slice.h"

bool service_argument(struct slice arguments, struct slice name, struct slice *value);
/* False, and *value as it was, when it is missing or no number from `low` to `high`. */
bool service_argument_number(struct slice arguments, struct slice name, uint64_t low, uint64_t high,
                             uint64_t *value);

#endif
