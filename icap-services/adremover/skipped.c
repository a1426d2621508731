#include "adremover/skipped.h"

#include "base/assert.h"
#include "base/plural.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENDING = 90 }; /* room for what stands behind the names */

struct text {
    char *out;
    size_t length, capacity;
};

struct option {
    const char *name;
    unsigned rules;
};

static void skipped_append(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(text->out + text->length, room, format, arguments);
    va_end(arguments);
    text->length += (size_t)length < room ? (size_t)length : room - 1;
}

static int by_rules(const void *a, const void *b) {
    const struct option *left = a, *right = b;
    if (left->rules != right->rules)
        return left->rules > right->rules ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void append_options(struct text *text, const struct filter_counts *counts) {
    struct option options[FILTER_OPTIONS_MAX];
    unsigned count = counts->option_count, i;
    for (i = 0; i < count; i++)
        options[i] = (struct option){counts->options[i].name, counts->options[i].rules};
    qsort(options, count, sizeof *options, by_rules);
    for (i = 0; i < count; i++) {
        if (text->capacity - text->length < strlen(options[i].name) + ENDING)
            break;
        skipped_append(text, "%s%s %u", i > 0 ? ", " : "", options[i].name, options[i].rules);
    }
    if (i < count)
        skipped_append(text, " and %u more", count - i);
}

void skipped_text(const struct filter_counts *counts, unsigned unread, char *out, size_t capacity) {
    struct text text = {out, 0, capacity};
    ASSERT(capacity >= SKIPPED_TEXT_MIN);
    out[0] = '\0';
    if (counts->unsupported > 0) {
        skipped_append(&text, "skipped for options that are not supported: %u %s (",
                       counts->unsupported, plural(counts->unsupported, "rule", "rules"));
        append_options(&text, counts);
        skipped_append(&text, ")");
    }
    if (counts->bad > 0)
        skipped_append(&text, "%sbad rules: %u", text.length > 0 ? "; " : "", counts->bad);
    if (unread > 0)
        skipped_append(&text, "%slists that can't be read: %u", text.length > 0 ? "; " : "",
                       unread);
}
