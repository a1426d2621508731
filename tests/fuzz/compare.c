#include "compare.h"

#include "repair.h"

const struct difference differences[] = {
    {"version-other", RETORT_REFUSES, repair_version_other},
    {"version-1.x", LLHTTP_REFUSES, repair_version_minor},
    {"no-version", RETORT_REFUSES, repair_no_version},
    {"protocol", RETORT_REFUSES, repair_protocol},
    {"method-unknown", LLHTTP_REFUSES, repair_method},
    {"target-form", LLHTTP_REFUSES, repair_target},
    {"target-bytes", RETORT_REFUSES, repair_target},
    {"spaces", RETORT_REFUSES, repair_spaces},
    {"empty-lines", RETORT_REFUSES, repair_empty_lines},
    {"bare-lf", RETORT_REFUSES, repair_bare_lf},
    {"status", RETORT_REFUSES, repair_status},
    {"reason", RETORT_REFUSES, repair_reason},
    {"obs-fold", RETORT_REFUSES, repair_folds},
    {"too-many-fields", RETORT_REFUSES, repair_many_fields},
    {"length-repeated", LLHTTP_REFUSES, repair_length_repeated},
    {"length-too-large", RETORT_REFUSES, repair_length_large},
    {"coding-other", RETORT_REFUSES, repair_codings},
    {"coding-in-1.0", RETORT_REFUSES, repair_coding_version},
    {"connect-body", RETORT_REFUSES, repair_connect_body},
    {"never-a-body", READ_OTHERWISE, repair_never_a_body},
    {NULL, READ_OTHERWISE, NULL},
};

unsigned difference_count(void) {
    return sizeof differences / sizeof differences[0] - 1;
}

/* A head that is not over is ended, so that a refusal which comes late is seen. */
static const char *read_both(struct comparison *comparison, struct slice head) {
    static const char end[] = "\r\n\r\n";
    char whole[READING_MAX];
    reading_by_retort(&comparison->ours, head);
    reading_by_llhttp(&comparison->theirs, head);
    if (comparison->ours.verdict == READING_INCOMPLETE ||
        comparison->theirs.verdict == READING_INCOMPLETE) {
        if (head.length + sizeof end - 1 > sizeof whole)
            return NULL;
        memcpy(whole, head.base, head.length);
        memcpy(whole + head.length, end, sizeof end - 1);
        head = slice_make(whole, head.length + sizeof end - 1);
        reading_by_retort(&comparison->ours, head);
        reading_by_llhttp(&comparison->theirs, head);
        return reading_difference(&comparison->ours, &comparison->theirs);
    }
    return reading_difference(&comparison->ours, &comparison->theirs);
}

static enum difference_side side_of(const struct comparison *comparison) {
    if (comparison->ours.verdict == comparison->theirs.verdict)
        return READ_OTHERWISE;
    return comparison->ours.verdict < comparison->theirs.verdict ? RETORT_REFUSES : LLHTTP_REFUSES;
}

/* Repaired, the two must accept the same where one of them did before. */
static bool agrees(struct comparison *comparison, enum reading_verdict best) {
    struct slice head = slice_make(comparison->repaired.bytes, comparison->repaired.length);
    return read_both(comparison, head) == NULL && comparison->ours.verdict >= best;
}

static void put_text(struct text *text, struct slice head) {
    memcpy(text->bytes, head.base, head.length);
    text->length = head.length;
}

/* One kind that explains all, else several of them together, of which the first has the side. */
static const struct difference *explain(struct comparison *comparison, struct slice head) {
    const struct difference *first = NULL;
    struct text *text = &comparison->repaired;
    enum difference_side side = side_of(comparison);
    enum reading_verdict best = comparison->ours.verdict > comparison->theirs.verdict
                                    ? comparison->ours.verdict
                                    : comparison->theirs.verdict;
    for (const struct difference *kind = differences; kind->name != NULL; kind++) {
        put_text(text, head);
        if (kind->side == side && kind->repair(text) && agrees(comparison, best))
            return kind;
    }
    put_text(text, head);
    for (const struct difference *kind = differences; kind->name != NULL; kind++) {
        if (!kind->repair(text))
            continue;
        if (first == NULL && kind->side == side)
            first = kind;
        if (agrees(comparison, best))
            return first;
    }
    return NULL;
}

bool compare_heads(struct comparison *comparison, struct slice head,
                   const struct difference **kind) {
    *kind = NULL;
    comparison->what = NULL;
    if (head.length > COMPARE_MAX)
        return true;
    comparison->what = read_both(comparison, head);
    if (comparison->what == NULL)
        return true;
    *kind = explain(comparison, head);
    return *kind != NULL;
}
