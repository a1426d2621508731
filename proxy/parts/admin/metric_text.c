#include "admin/metric_text.h"

#include "base/assert.h"
#include "base/slice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void metric_text_number(FILE *out, const char *name, enum counter_kind kind, const char *help,
                        double value) {
    bool total = kind == COUNTER_TOTAL;
    const char *suffix = total ? "_total" : "";
    fprintf(out, "# HELP retort_%s%s %s\n", name, suffix, help);
    fprintf(out, "# TYPE retort_%s%s %s\n", name, suffix, total ? "counter" : "gauge");
    fprintf(out, "retort_%s%s %.15g\n", name, suffix, value);
}

void metric_text_label(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void print_trace(FILE *out, const struct request_example *example) {
    struct trace_context context = {.span = 0};
    char text[TRACE_ID_TEXT];
    memcpy(context.trace, example->trace, TRACE_ID);
    trace_context_write_id(&context, text);
    fprintf(out, ",trace_id=\"%.*s\"", TRACE_ID_TEXT, text);
}

static void print_exemplar(FILE *out, const struct request_example *example) {
    char id[SLICE_HEX + 1] = "";
    slice_put_hex(id, example->number);
    fprintf(out, " # {transaction_id=\"%.*s\"", SLICE_HEX, id);
    if (example->traced)
        print_trace(out, example);
    fprintf(out, "} %.6f %" PRIu64 ".%03u", (double)example->microseconds / 1e6,
            example->ended / 1000, (unsigned)(example->ended % 1000));
}

void metric_text_times(FILE *out, const char *name, const char *labels, const struct times *times,
                       const struct request_example *examples) {
    const char *comma = labels[0] != '\0' ? "," : "";
    const char *open = labels[0] != '\0' ? "{" : "", *close = labels[0] != '\0' ? "}" : "";
    uint64_t passed = 0;
    for (unsigned i = 0; i < TIMES_COUNT; i++) {
        char most[32] = "+Inf";
        passed += times->below[i];
        if (i + 1 < TIMES_COUNT)
            snprintf(most, sizeof most, "%.9g", (double)((uint64_t)TIMES_FIRST << i) / 1e6);
        fprintf(out, "retort_%s_bucket{%s%sle=\"%s\"} %" PRIu64, name, labels, comma, most, passed);
        if (examples != NULL && examples[i].ended != 0)
            print_exemplar(out, &examples[i]);
        fputc('\n', out);
    }
    fprintf(out, "retort_%s_sum%s%s%s %.6f\nretort_%s_count%s%s%s %" PRIu64 "\n", name, open,
            labels, close, (double)times->sum / 1e6, name, open, labels, close, times->count);
}

/* A line that describes a family: "# HELP name text" or "# TYPE name kind". */
static void write_description(FILE *out, struct slice line) {
    static const struct slice total = SLICE("_total");
    struct slice rest = slice_make(line.base + 7, line.length - 7);
    const char *blank = memchr(rest.base, ' ', rest.length);
    size_t name = blank == NULL ? rest.length : (size_t)(blank - rest.base);
    bool counter = name > total.length &&
                   memcmp(rest.base + name - total.length, total.base, total.length) == 0;
    fprintf(out, "%.*s%.*s", 7, line.base, (int)(counter ? name - total.length : name), rest.base);
    for (size_t i = name; i < rest.length; i++) {
        if (rest.base[i] == '"')
            fputc('\\', out);
        fputc(rest.base[i], out);
    }
    fputc('\n', out);
}

void metric_text_to_open(char **text, size_t *length) {
    struct slice rest = slice_make(*text, *length), line;
    char *made = NULL;
    size_t made_length = 0;
    FILE *out = open_memstream(&made, &made_length);
    ASSERT(out != NULL);
    while (slice_next_line(&rest, &line))
        if (line.length > 7 && line.base[0] == '#')
            write_description(out, line);
        else
            fprintf(out, "%.*s\n", SLICE_PRINT(line));
    fputs("# EOF\n", out);
    ASSERT(fclose(out) == 0);
    free(*text);
    *text = made;
    *length = made_length;
}
