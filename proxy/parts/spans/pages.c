#include "admin/metric_text.h"
#include "admin/part_pages.h"
#include "spans/exporter.h"

/* The part spans in the admin plane. */

static void spans_print_metrics(FILE *out, void *state) {
    struct span_numbers spans;
    span_exporter_count(state, &spans);
    metric_text_number(out, "spans_exported", COUNTER_TOTAL,
                       "Spans that the collector took (tracing.collector).",
                       (double)spans.exported);
    metric_text_number(
        out, "spans_dropped", COUNTER_TOTAL,
        "Spans that were dropped because tracing.queue was full, or because the collector "
        "did not take them.",
        (double)spans.dropped);
    metric_text_number(out, "spans_rejected", COUNTER_TOTAL,
                       "Spans that the collector rejected when it took the others of the post.",
                       (double)spans.rejected);
    metric_text_number(out, "span_posts_failed", COUNTER_TOTAL,
                       "Posts of spans that the collector did not take. Some are repeated.",
                       (double)spans.posts_failed);
    metric_text_number(out, "spans_waiting_requests", COUNTER_GAUGE,
                       "Traced requests whose spans wait for the collector (tracing.queue).",
                       spans.waiting);
}

const struct part_pages spans_pages = {.print_metrics = spans_print_metrics};
