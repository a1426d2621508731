/*
 * The exporter posts the spans of traced transactions to a collector, in a thread of its own.
 * Workers hand over whole sets and never wait.
 *
 *     struct span_exporter *exporter = span_exporter_new();
 *     span_exporter_configure(exporter, settings);           at the start, and after a reload
 *     span_exporter_post(exporter, &set);                    a worker
 *     span_exporter_count(exporter, &numbers);               the admin plane
 *     span_exporter_free(&exporter);                         sends what waits, in two seconds at most
 *
 * The queue is bounded by tracing.queue; sets that find no room are dropped and counted. Sets go
 * out together: SPAN_BATCH of them, or those of a second. A collector that is away or overloaded
 * gets the same post again after one, two, four and eight seconds; then its spans are dropped.
 *
 * Threads: any; one lock guards the queue and is never held while something is posted.
 */
#ifndef RETORT_SPANS_EXPORTER_H
#define RETORT_SPANS_EXPORTER_H

#include "settings/settings.h"
#include "spans/otlp.h"

enum { SPAN_BATCH = 64 };

struct span_exporter;

/* Spans, since the start. */
struct span_numbers {
    uint64_t exported;
    uint64_t dropped;  /* because the queue was full, or the collector did not take them */
    uint64_t rejected; /* of posts that it took */
    uint64_t posts_failed;
    unsigned waiting; /* sets */
};

struct span_exporter *span_exporter_new(void);
void span_exporter_free(struct span_exporter **exporterp);
void span_exporter_configure(struct span_exporter *exporter, struct settings *settings);
void span_exporter_post(struct span_exporter *exporter, struct span_set **setp);
void span_exporter_count(struct span_exporter *exporter, struct span_numbers *numbers);

#endif
