/*
 * Metrics in the text format of Prometheus, as JSON.
 *
 *     json_t *json = metrics_json("a{b=\"c\"} 1\n");   [{"name": "a", "labels": {"b": "c"}, "value": 1}]
 *
 * Lines that are no metrics are left out; a value that JSON has no number for (NaN, +Inf) is a text.
 *
 * Threads: values.
 */
#ifndef RETORT_CTL_METRICS_JSON_H
#define RETORT_CTL_METRICS_JSON_H

#include <jansson.h>

json_t *metrics_json(const char *text);

#endif
