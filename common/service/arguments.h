/*
 * The arguments of a service: the text behind the "?" in the URI with which a host calls the
 * service. With them one service can work differently for different classes of URLs, because the
 * proxy can send each class to a URI of its own:
 *
 *     icap://127.0.0.1:1344/gray?width=320&quality=60
 *
 *     struct slice text;
 *     uint64_t width;
 *     if (service_argument(exchange->arguments, SLICE("width"), &text)) ...          "320"
 *     if (service_argument_number(exchange->arguments, SLICE("width"), 1, 65535, &width)) ...
 *
 * If a name occurs several times, the first one counts. Names and values are not percent-decoded.
 * An argument without "=" has an empty value. Threads: pure.
 */
#ifndef RETORT_SERVICE_ARGUMENTS_H
#define RETORT_SERVICE_ARGUMENTS_H

#include "base/slice.h"

bool service_argument(struct slice arguments, struct slice name, struct slice *value);
/* False when the argument is missing or is no number from `low` to `high`; *value does not change
 * then. */
bool service_argument_number(struct slice arguments, struct slice name, uint64_t low, uint64_t high,
                             uint64_t *value);

#endif
