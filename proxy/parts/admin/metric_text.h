/*
 * Pieces of the text formats of metrics (Prometheus 0.0.4 and OpenMetrics 1.0).
 *
 *     metric_text_number(out, "workers", COUNTER_GAUGE, "Threads that serve clients.", 4);
 *     metric_text_label(out, listener->name);              the value of a label, escaped
 *     metric_text_times(out, "disk_read_seconds", "", &times, NULL);
 *     metric_text_times(out, "icap_service_queue_seconds", labels, &times, NULL);
 *     metric_text_to_open(&page->text, &page->length);     all of it, from the one to the other
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_METRIC_TEXT_H
#define RETORT_ADMIN_METRIC_TEXT_H

#include "admin/request_counts.h"
#include "base/times.h"
#include "net/counters.h"

#include <stdio.h>

/* A metric without labels, with its help. `name` is without "retort_" and "_total". */
void metric_text_number(FILE *out, const char *name, enum counter_kind kind, const char *help,
                        double value);
void metric_text_label(FILE *out, const char *text);
/* The samples of a histogram. `name` is without "retort_"; `labels` may be empty. With `examples`,
 * one for each element of times->below, buckets have exemplars; only OpenMetrics has them. */
void metric_text_times(FILE *out, const char *name, const char *labels, const struct times *times,
                       const struct request_example *examples);
/* From the format of Prometheus to OpenMetrics: families of counters are named without "_total",
 * quotes in help texts are escaped, and the text has an end. `text` is replaced. */
void metric_text_to_open(char **text, size_t *length);

#endif
