#include "tools/tally.h"

#include "admin/answer.h"
#include "base/assert.h"
#include "base/text.h"
#include "base/units.h"
#include "tools/terminal.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Durations are kept in classes, each a quarter longer than the one before it. */
enum { DURATIONS = 72 };
static const double shortest = 0.1, factor = 1.25;

struct count {
    uint64_t requests, bytes, errors;
    uint64_t judged, hits; /* those with a result of the cache */
    uint64_t timed;
    uint32_t durations[DURATIONS];
};

struct tally_row {
    size_t length;
    char key[TALLY_KEY_MAX];
    struct count count;
};

struct tally {
    unsigned magic;
#define TALLY_MAGIC 0x7a117a11u
    enum tally_key key;
    void *tree;                         /* of rows, by key: tsearch(3) */
    struct tally_row *rows[TALLY_KEYS]; /* in no order */
    size_t row_count;
    struct count all, others;
};

static const char *const key_words[] = {"host", "client", "url", "service", "status"};

enum tally_key tally_key_of(const char *word) {
    int at = 0;
    while (at < TALLY_NO_KEY && strcmp(key_words[at], word) != 0)
        at++;
    return (enum tally_key)at;
}

struct tally *tally_new(enum tally_key key) {
    struct tally *tally;
    ALLOC_OBJ(tally, TALLY_MAGIC);
    tally->key = key;
    return tally;
}

static int compare_keys(const void *a, const void *b) {
    const struct tally_row *one = a, *other = b;
    if (one->length != other->length)
        return one->length < other->length ? -1 : 1;
    return memcmp(one->key, other->key, one->length);
}

static void tally_forget(struct tally *tally, struct tally_row *row) {
    tdelete(row, &tally->tree, compare_keys);
    free(row);
}

void tally_free(struct tally **tallyp) {
    struct tally *tally = *tallyp;
    *tallyp = NULL;
    CHECK_OBJ(tally, TALLY_MAGIC);
    for (size_t i = 0; i < tally->row_count; i++)
        tally_forget(tally, tally->rows[i]);
    FREE_OBJ(tally);
}

/* Counting. */

static unsigned class_of_duration(double milliseconds) {
    double at = milliseconds > shortest ? ceil(log(milliseconds / shortest) / log(factor)) : 0;
    return at < DURATIONS - 1 ? (unsigned)at : DURATIONS - 1;
}

static void tally_count(struct count *count, const struct log_entry *record, double milliseconds,
                        bool failed) {
    count->requests++;
    count->bytes += record->bytes;
    count->errors += failed;
    count->judged += record->result.length > 0;
    count->hits += record->hit;
    if (milliseconds >= 0) {
        count->timed++;
        count->durations[class_of_duration(milliseconds)]++;
    }
}

static void tally_join(struct count *count, const struct count *more) {
    count->requests += more->requests;
    count->bytes += more->bytes;
    count->errors += more->errors;
    count->judged += more->judged;
    count->hits += more->hits;
    count->timed += more->timed;
    for (unsigned i = 0; i < DURATIONS; i++)
        count->durations[i] += more->durations[i];
}

/* So much that 95 of 100 took no longer, but for the width of a class; less than 0: not known. */
static double p95_of(const struct count *count) {
    uint64_t below = 0;
    for (unsigned i = 0; i < DURATIONS; i++) {
        below += count->durations[i];
        if (below > 0 && below * 100 >= count->timed * 95)
            return shortest * pow(factor, i);
    }
    return -1;
}

static int compare_requests(const void *a, const void *b) {
    const struct tally_row *one = *(struct tally_row *const *)a,
                           *other = *(struct tally_row *const *)b;
    if (one->count.requests != other->count.requests)
        return one->count.requests < other->count.requests ? 1 : -1;
    return compare_keys(one, other);
}

static void tally_make_room(struct tally *tally) {
    qsort(tally->rows, tally->row_count, sizeof *tally->rows, compare_requests);
    while (tally->row_count > TALLY_KEYS / 2) {
        struct tally_row *row = tally->rows[--tally->row_count];
        tally_join(&tally->others, &row->count);
        tally_forget(tally, row);
    }
}

static struct tally_row *tally_find(struct tally *tally, struct slice key) {
    struct tally_row wanted;
    wanted.length = key.length < TALLY_KEY_MAX ? key.length : TALLY_KEY_MAX;
    memcpy(wanted.key, key.base, wanted.length);
    void *found = tfind(&wanted, &tally->tree, compare_keys);
    if (found != NULL)
        return *(struct tally_row **)found;
    if (tally->row_count == TALLY_KEYS)
        tally_make_room(tally);
    struct tally_row *row = xcalloc(1, sizeof *row);
    row->length = wanted.length;
    memcpy(row->key, wanted.key, wanted.length);
    ASSERT(tsearch(row, &tally->tree, compare_keys) != NULL);
    return tally->rows[tally->row_count++] = row;
}

static struct slice key_of(const struct tally *tally, const struct log_entry *record,
                           char status[16]) {
    struct slice key = record->host;
    if (tally->key == TALLY_CLIENT)
        key = record->client;
    else if (tally->key == TALLY_URL)
        key = record->url;
    else if (tally->key == TALLY_STATUS)
        key = slice_make(status, (size_t)snprintf(status, 16, "%u", record->status));
    return key.length > 0 ? key : SLICE("-");
}

void tally_add(struct tally *tally, const struct log_entry *record) {
    char status[16];
    CHECK_OBJ(tally, TALLY_MAGIC);
    bool failed = record->status == 0 || record->status >= 500;
    tally_count(&tally->all, record, record->milliseconds, failed);
    if (tally->key != TALLY_SERVICE)
        tally_count(&tally_find(tally, key_of(tally, record, status))->count, record,
                    record->milliseconds, failed);
    for (unsigned i = 0; tally->key == TALLY_SERVICE && i < record->service_count; i++) {
        const struct log_entry_service *service = &record->services[i];
        tally_count(&tally_find(tally, service->name)->count, record, service->milliseconds,
                    service->failed);
    }
}

/* Showing. */

static int compare_bytes(const void *a, const void *b) {
    const struct tally_row *one = *(struct tally_row *const *)a,
                           *other = *(struct tally_row *const *)b;
    if (one->count.bytes != other->count.bytes)
        return one->count.bytes < other->count.bytes ? 1 : -1;
    return compare_requests(a, b);
}

static int compare_errors(const void *a, const void *b) {
    const struct tally_row *one = *(struct tally_row *const *)a,
                           *other = *(struct tally_row *const *)b;
    if (one->count.errors != other->count.errors)
        return one->count.errors < other->count.errors ? 1 : -1;
    return compare_requests(a, b);
}

static int compare_p95(const void *a, const void *b) {
    const struct tally_row *one = *(struct tally_row *const *)a,
                           *other = *(struct tally_row *const *)b;
    double mine = p95_of(&one->count), its = p95_of(&other->count);
    if (mine < its || mine > its)
        return mine < its ? 1 : -1;
    return compare_requests(a, b);
}

static void tally_sort(struct tally *tally, const char *sort) {
    int (*compare)(const void *, const void *) = strcmp(sort, "bytes") == 0    ? compare_bytes
                                                 : strcmp(sort, "errors") == 0 ? compare_errors
                                                 : strcmp(sort, "p95") == 0    ? compare_p95
                                                                               : compare_requests;
    qsort(tally->rows, tally->row_count, sizeof *tally->rows, compare);
}

static void print_count(FILE *out, const struct count *count) {
    char bytes[UNITS_TEXT];
    double p95 = p95_of(count);
    fprintf(out, "%9llu %*s%s", (unsigned long long)count->requests, count->bytes < 1024 ? 9 : 10,
            units_show_size(bytes, count->bytes), count->bytes < 1024 ? " " : "");
    if (count->judged > 0)
        fprintf(out, " %5.1f%%", 100.0 * (double)count->hits / (double)count->judged);
    else
        fprintf(out, " %6s", "-");
    fprintf(out, " %7llu", (unsigned long long)count->errors);
    if (p95 >= 0)
        fprintf(out, " %9.1f ms ", p95);
    else
        fprintf(out, " %9s    ", "-");
}

/* Clients, origins and whoever wrote the log have chosen the key. */
static void tally_print_key(FILE *out, struct slice key) {
    while (key.length > 0) {
        uint32_t character;
        size_t length = text_decode(key, &character);
        if (length > 0 && !text_is_hidden(character))
            fwrite(key.base, 1, length, out);
        else if (length > 0)
            fprintf(out, "\\u%04x", character);
        else
            fprintf(out, "\\x%02x", (unsigned char)key.base[0]);
        length += length == 0;
        key = slice_make(key.base + length, key.length - length);
    }
    fputc('\n', out);
}

static size_t rows_shown(const struct tally *tally, const struct tally_view *view) {
    return tally->row_count < view->rows ? tally->row_count : view->rows;
}

static void rest_of(const struct tally *tally, const struct tally_view *view, struct count *rest) {
    *rest = tally->others;
    for (size_t i = rows_shown(tally, view); i < tally->row_count; i++)
        tally_join(rest, &tally->rows[i]->count);
}

static void tally_print_text(struct tally *tally, FILE *out, const struct tally_view *view) {
    struct count rest;
    terminal_heading(out, "%9s %10s %6s %7s %9s    %s", "REQUESTS", "BYTES  ", "HITS", "ERRORS",
                     "P95", key_words[tally->key]);
    for (size_t i = 0; i < rows_shown(tally, view); i++) {
        print_count(out, &tally->rows[i]->count);
        tally_print_key(out, slice_make(tally->rows[i]->key, tally->rows[i]->length));
    }
    rest_of(tally, view, &rest);
    if (rest.requests > 0) {
        print_count(out, &rest);
        fputs("others\n", out);
    }
    print_count(out, &tally->all);
    fputs("all", out);
    if (view->seconds > 0)
        fprintf(out, ", %.1f requests/s", (double)tally->all.requests / view->seconds);
    fputc('\n', out);
}

static json_t *json_of_count(const struct count *count) {
    double p95 = p95_of(count);
    json_t *json = json_pack("{sI sI sI}", "requests", (json_int_t)count->requests, "bytes",
                             (json_int_t)count->bytes, "errors", (json_int_t)count->errors);
    if (count->judged > 0)
        json_object_set_new(json, "hits", json_integer((json_int_t)count->hits));
    if (p95 >= 0)
        json_object_set_new(json, "p95_ms", json_real(p95));
    return json;
}

/* Bytes that are no UTF-8 are shown as escapes. */
static json_t *json_of_key(const struct tally_row *row) {
    char *text;
    size_t length;
    json_t *json = json_stringn(row->key, row->length);
    if (json != NULL)
        return json;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    tally_print_key(out, slice_make(row->key, row->length));
    ASSERT(fclose(out) == 0);
    json = json_stringn(text, length - 1);
    free(text);
    return json;
}

static void tally_print_json(struct tally *tally, FILE *out, const struct tally_view *view) {
    struct count rest;
    json_t *rows = json_array();
    for (size_t i = 0; i < rows_shown(tally, view); i++) {
        json_t *row = json_of_count(&tally->rows[i]->count);
        json_object_set_new(row, key_words[tally->key], json_of_key(tally->rows[i]));
        json_array_append_new(rows, row);
    }
    rest_of(tally, view, &rest);
    json_t *json = json_pack("{so so so sI}", "rows", rows, "others", json_of_count(&rest), "all",
                             json_of_count(&tally->all), "bad_lines", (json_int_t)view->bad_lines);
    if (view->seconds > 0)
        json_object_set_new(json, "seconds", json_real(view->seconds));
    json_dumpf(json, out, JSON_ENSURE_ASCII | JSON_COMPACT);
    fputc('\n', out);
    json_decref(json);
}

void tally_print(struct tally *tally, FILE *out, const struct tally_view *view) {
    CHECK_OBJ(tally, TALLY_MAGIC);
    tally_sort(tally, view->sort);
    if (view->json)
        tally_print_json(tally, out, view);
    else
        tally_print_text(tally, out, view);
}

/* What is shown. */

bool tally_view_read(struct tally_view *view, enum tally_key *key,
                     const struct command_line *line) {
    static const char *const sorts[] = {"requests", "bytes", "errors", "p95"};
    const char *by = command_line_option(line, "by"), *sort = command_line_option(line, "sort");
    *key = tally_key_of(by != NULL ? by : "host");
    *view = (struct tally_view){.json = line->json};
    if (*key == TALLY_NO_KEY) {
        fprintf(stderr, "retortctl: --by: write host, client, url, service or status\n");
        return false;
    }
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
        if (strcmp(sort != NULL ? sort : sorts[0], sorts[i]) == 0)
            view->sort = sorts[i];
    if (view->sort == NULL) {
        fprintf(stderr, "retortctl: --sort: write requests, bytes, errors or p95\n");
        return false;
    }
    view->rows = command_line_number(line, "rows", TALLY_ROWS, TALLY_ROWS_MAX);
    return view->rows > 0;
}
