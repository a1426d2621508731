#include "icap/info_text.h"

#include <stddef.h>
#include <string.h>

#define INFO_NUMBER_MOST ((uint64_t)1 << 53)

enum info_unit { INFO_COUNT, INFO_BYTES };

static const struct info_line {
    const char *label;
    size_t at; /* in struct server_numbers */
    enum info_unit unit;
} info_lines[] = {
    {"Children number", offsetof(struct server_numbers, processes), INFO_COUNT},
    {"Closing Processes", offsetof(struct server_numbers, processes_closing), INFO_COUNT},
    {"Started Processes", offsetof(struct server_numbers, processes_started), INFO_COUNT},
    {"Crashed Processes", offsetof(struct server_numbers, processes_crashed), INFO_COUNT},
    {"Free Servers", offsetof(struct server_numbers, threads_free), INFO_COUNT},
    {"Used Servers", offsetof(struct server_numbers, threads_used), INFO_COUNT},
    {"REQUESTS", offsetof(struct server_numbers, requests), INFO_COUNT},
    {"FAILED REQUESTS", offsetof(struct server_numbers, failed_requests), INFO_COUNT},
    {"ALLOW 204", offsetof(struct server_numbers, unmodified), INFO_COUNT},
    {"BYTES IN", offsetof(struct server_numbers, bytes_in), INFO_BYTES},
    {"BYTES OUT", offsetof(struct server_numbers, bytes_out), INFO_BYTES},
};

enum { INFO_LINES = sizeof info_lines / sizeof *info_lines };

/* Takes the first word off the text. */
static struct slice info_word(struct slice *text) {
    *text = slice_trim(*text);
    const char *blank = memchr(text->base, ' ', text->length);
    size_t length = blank == NULL ? text->length : (size_t)(blank - text->base);
    struct slice word = slice_make(text->base, length);
    *text = slice_make(text->base + length, text->length - length);
    return word;
}

static bool info_number(struct slice *text, uint64_t *number) {
    return slice_to_uint64(info_word(text), number) && *number <= INFO_NUMBER_MOST;
}

/* "78", or "3 Kbs 78 bytes". */
static bool info_value(struct slice text, enum info_unit unit, uint64_t *value) {
    uint64_t first, rest;
    if (!info_number(&text, &first))
        return false;
    *value = first;
    if (unit == INFO_COUNT)
        return slice_trim(text).length == 0;
    if (!slice_equal(info_word(&text), SLICE("Kbs")) || !info_number(&text, &rest) ||
        !slice_equal(info_word(&text), SLICE("bytes")) || slice_trim(text).length > 0)
        return false;
    *value = first * 1024 + rest;
    return *value <= INFO_NUMBER_MOST;
}

static const struct info_line *info_find(struct slice label) {
    for (size_t i = 0; i < INFO_LINES; i++)
        if (slice_equal(label, slice_from(info_lines[i].label)))
            return &info_lines[i];
    return NULL;
}

bool icap_info_text_read(struct slice text, struct server_numbers *numbers) {
    unsigned seen = 0;
    struct slice line;
    while (slice_next_line(&text, &line)) {
        uint64_t value;
        const char *colon = memchr(line.base, ':', line.length);
        size_t length = colon == NULL ? 0 : (size_t)(colon - line.base);
        const struct info_line *known = info_find(slice_trim(slice_make(line.base, length)));
        if (known == NULL)
            continue;
        unsigned bit = 1u << (known - info_lines);
        if ((seen & bit) != 0 ||
            !info_value(slice_make(colon + 1, line.length - length - 1), known->unit, &value))
            return false;
        memcpy((char *)numbers + known->at, &value, sizeof value);
        seen |= bit;
    }
    return seen == (1u << INFO_LINES) - 1;
}
