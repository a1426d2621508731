#include "tools/difference.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "record/mask.h"
#include "tools/icap_command.h"

#include <stdio.h>
#include <xxhash.h>

enum { VALUE_SHOWN = 120 };

/* Output. */

static void print_start(const struct difference *difference) {
    printf("#%llu ", (unsigned long long)difference->number);
    icap_print(stdout, difference->recorded->method);
    putchar(' ');
    icap_print(stdout, difference->recorded->url);
    fputs(": ", stdout);
}

static void print_value(struct slice value) {
    if (value.base == NULL) {
        fputs("none", stdout);
        return;
    }
    putchar('"');
    icap_print(stdout,
               slice_make(value.base, value.length < VALUE_SHOWN ? value.length : VALUE_SHOWN));
    fputs(value.length > VALUE_SHOWN ? "...\"" : "\"", stdout);
}

static json_t *difference_text_to_json(struct slice text) {
    if (text.base == NULL)
        return json_null();
    json_t *json = json_stringn(text.base, text.length);
    return json != NULL ? json : json_string("?");
}

static void difference_append(struct difference *difference, const char *what, json_t *more) {
    json_t *json = json_pack("{s:I, s:o, s:o, s:s}", "number", (json_int_t)difference->number,
                             "method", difference_text_to_json(difference->recorded->method), "url",
                             difference_text_to_json(difference->recorded->url), "what", what);
    json_object_update(json, more);
    json_decref(more);
    json_array_append_new(difference->json, json);
}

static void tell_values(struct difference *difference, const char *what, struct slice name,
                        struct slice recorded, struct slice replayed) {
    if (difference->json != NULL) {
        difference_append(difference, what,
                          json_pack("{s:o, s:o, s:o}", "name", difference_text_to_json(name),
                                    "recorded", difference_text_to_json(recorded), "replayed",
                                    difference_text_to_json(replayed)));
        return;
    }
    print_start(difference);
    fputs(what, stdout);
    putchar(' ');
    if (name.length > 0) {
        icap_print(stdout, name);
        putchar(' ');
    }
    print_value(recorded);
    fputs(" -> ", stdout);
    print_value(replayed);
    putchar('\n');
}

void difference_remark(struct difference *difference, const char *remark) {
    if (difference->json != NULL) {
        difference_append(difference, "remark", json_pack("{s:s}", "remark", remark));
        return;
    }
    print_start(difference);
    puts(remark);
}

/* The verdict. */

static bool same_verdict(struct slice a, struct slice b) {
    if (slice_equal(a, SLICE("partial")))
        a = SLICE("modified");
    if (slice_equal(b, SLICE("partial")))
        b = SLICE("modified");
    return slice_equal(a, b);
}

void difference_verdict(struct difference *difference, const char *verdict, const char *error) {
    char text[400];
    struct slice recorded = difference->recorded->verdict;
    if (same_verdict(recorded, slice_from(verdict)))
        return;
    difference->found |= DIFFERENCE_VERDICT;
    snprintf(text, sizeof text, "%s%s%s", verdict, error != NULL ? ": " : "",
             error != NULL ? error : "");
    tell_values(difference, "verdict", slice_make(NULL, 0), recorded, slice_from(text));
}

/* Heads. */

static bool is_ignored(const struct difference *difference, struct slice name) {
    static const char *const usual[] = {"Date", "ISTag", "Via", "Age", "Connection", "Keep-Alive"};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (slice_equal_nocase(name, slice_from(usual[i])))
            return true;
    for (unsigned i = 0; i < difference->ignored_count; i++)
        if (slice_equal_nocase(name, slice_from(difference->ignored[i])))
            return true;
    return false;
}

/* Returns the value of the next field of that name from `at` on, and moves `at` behind it. The
 * base is NULL when there is none. */
static struct slice next_value(const struct http_head *head, struct slice name, unsigned *at) {
    while (*at < head->field_count) {
        const struct http_field *field = &head->fields[(*at)++];
        if (slice_equal_nocase(field->name, name))
            return field->value.base != NULL ? field->value : SLICE("");
    }
    return slice_make(NULL, 0);
}

/* Compares all fields of that name in their order, up to the first difference. */
static void compare_field(struct difference *difference, struct slice name,
                          const struct http_head *recorded, const struct http_head *replayed) {
    unsigned at = 0, other_at = 0;
    for (;;) {
        struct slice value = next_value(recorded, name, &at);
        struct slice other = next_value(replayed, name, &other_at);
        if (value.base == NULL && other.base == NULL)
            return;
        bool same = (value.base == NULL) == (other.base == NULL);
        bool masked = difference->recorded->masked && slice_equal(value, RECORD_MASK);
        if (same && (masked || slice_equal(value, other)))
            continue;
        difference->found |= DIFFERENCE_HEAD;
        tell_values(difference, "field", name, value, other);
        return;
    }
}

static bool named_before(const struct http_head *head, unsigned at) {
    for (unsigned i = 0; i < at; i++)
        if (slice_equal_nocase(head->fields[i].name, head->fields[at].name))
            return true;
    return false;
}

static void compare_fields(struct difference *difference, const struct http_head *recorded,
                           const struct http_head *replayed) {
    for (unsigned i = 0; i < recorded->field_count; i++) {
        struct slice name = recorded->fields[i].name;
        if (!named_before(recorded, i) && !is_ignored(difference, name))
            compare_field(difference, name, recorded, replayed);
    }
    for (unsigned i = 0; i < replayed->field_count; i++) {
        struct slice name = replayed->fields[i].name;
        unsigned at = 0;
        if (!named_before(replayed, i) && !is_ignored(difference, name) &&
            next_value(recorded, name, &at).base == NULL)
            compare_field(difference, name, recorded, replayed);
    }
}

static void compare_start_lines(struct difference *difference, const struct http_head *recorded,
                                const struct http_head *replayed) {
    char old[24], new[24];
    if (recorded->status != replayed->status) {
        snprintf(old, sizeof old, "%u", recorded->status);
        snprintf(new, sizeof new, "%u", replayed->status);
        difference->found |= DIFFERENCE_HEAD;
        tell_values(difference, "status", slice_make(NULL, 0), slice_from(old), slice_from(new));
    }
    const struct {
        const char *what;
        struct slice old, new;
    } words[] = {{"method", recorded->method, replayed->method},
                 {"target", recorded->target, replayed->target}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!slice_equal(words[i].old, words[i].new)) {
            difference->found |= DIFFERENCE_HEAD;
            tell_values(difference, words[i].what, slice_make(NULL, 0), words[i].old, words[i].new);
        }
}

static bool difference_parse(struct http_head *head, struct slice bytes) {
    ssize_t used = slice_starts_with(bytes, SLICE("HTTP/"))
                       ? http_head_parse_response(head, bytes.base, bytes.length, 0)
                       : http_head_parse_request(head, bytes.base, bytes.length, 0);
    return used > 0;
}

void difference_head(struct difference *difference, const struct http_head *head) {
    struct http_head recorded;
    bool had = difference->recorded->result_head.length > 0;
    if (had && head != NULL && difference_parse(&recorded, difference->recorded->result_head)) {
        compare_start_lines(difference, &recorded, head);
        compare_fields(difference, &recorded, head);
    } else if (had || head != NULL) {
        difference->found |= DIFFERENCE_HEAD;
        difference_remark(difference, had && head != NULL ? "the recorded head can't be parsed"
                                      : had               ? "its answer has no head now"
                                                          : "its answer has a head now");
    }
}

/* The body. */

void difference_body(struct difference *difference, const char *bytes, size_t length) {
    const struct slice kept = difference->recorded->result;
    if (difference->sum == NULL) {
        difference->sum = XXH3_createState();
        ASSERT(difference->sum != NULL && XXH3_64bits_reset(difference->sum) == XXH_OK);
    }
    XXH3_64bits_update(difference->sum, bytes, length);
    for (size_t i = 0; i < length && !difference->differs && difference->length + i < kept.length;
         i++)
        if (bytes[i] != kept.base[difference->length + i]) {
            difference->differs = true;
            difference->differs_at = difference->length + i;
        }
    difference->length += length;
}

static void tell_body(struct difference *difference, const char *where) {
    const struct recorded_exchange *recorded = difference->recorded;
    difference->found |= DIFFERENCE_BODY;
    if (difference->json != NULL) {
        difference_append(
            difference, "body",
            json_pack("{s:I, s:I, s:o}", "recorded", (json_int_t)recorded->result_length,
                      "replayed", (json_int_t)difference->length, "offset",
                      difference->differs ? json_integer((json_int_t)difference->differs_at)
                                          : json_null()));
        return;
    }
    print_start(difference);
    printf("body differs %s", where);
    if (difference->differs)
        printf(" %llu", (unsigned long long)difference->differs_at);
    printf(", %llu -> %llu bytes\n", (unsigned long long)recorded->result_length,
           (unsigned long long)difference->length);
}

/* When only the beginning of a body is recorded, only the beginning is compared. */
void difference_body_end(struct difference *difference) {
    const struct recorded_exchange *recorded = difference->recorded;
    uint64_t shorter =
        difference->length < recorded->result_length ? difference->length : recorded->result_length;
    bool same_length = difference->length == recorded->result_length ||
                       (!recorded->result_whole && difference->length > recorded->result_length);
    if (!difference->differs && !same_length && shorter <= recorded->result.length) {
        difference->differs = true;
        difference->differs_at = shorter;
    }
    if (difference->differs)
        tell_body(difference, "at byte");
    else if (!same_length)
        tell_body(difference, "in length");
    else if (recorded->result_whole && difference->sum != NULL &&
             XXH3_64bits_digest(difference->sum) != recorded->result_sum)
        tell_body(difference, "after the recorded part");
}

void difference_release(struct difference *difference) {
    XXH3_freeState(difference->sum);
    difference->sum = NULL;
}
