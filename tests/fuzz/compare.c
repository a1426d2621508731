#include "compare.h"

#include "repair.h"

const struct difference differences[] = {
    {"version-other", RETORT_REFUSES, repair_version_other},
    {"version-1.x", LLHTTP_REFUSES, repair_version_minor},
    {"no-version", RETORT_REFUSES, repair_no_version},
    {"protocol", RETORT_REFUSES, repair_protocol},
    {"method-unknown", LLHTTP_REFUSES, repair_method},
    {"target-form", LLHTTP_REFUSES, repair_target},
    {"target-bytes", RETORT_REFUSES, repair_target_bytes},
    {"spaces", RETORT_REFUSES, repair_spaces},
    {"empty-lines", RETORT_REFUSES, repair_empty_lines},
    {"bare-lf", RETORT_REFUSES, repair_bare_lf},
    {"bare-cr", RETORT_REFUSES, repair_bare_cr},
    {"status", RETORT_REFUSES, repair_status},
    {"reason", RETORT_REFUSES, repair_reason},
    {"obs-fold", RETORT_REFUSES, repair_folds},
    {"blank-in-name", READ_OTHERWISE, repair_blanks},
    {"blank-refused", LLHTTP_REFUSES, repair_blanks},
    {"name-with-space", RETORT_REFUSES, repair_names},
    {"no-name", RETORT_REFUSES, repair_no_name},
    {"too-many-fields", RETORT_REFUSES, repair_many_fields},
    {"tab-refused", LLHTTP_REFUSES, repair_tabs},
    {"tab-in-coding", READ_OTHERWISE, repair_tabs},
    {"length-repeated", LLHTTP_REFUSES, repair_length_repeated},
    {"length-too-large", RETORT_REFUSES, repair_length_large},
    {"coding-empty", RETORT_REFUSES, repair_empty_codings},
    {"coding-other", RETORT_REFUSES, repair_codings},
    {"coding-in-1.0", RETORT_REFUSES, repair_coding_version},
    {"connect-body", RETORT_REFUSES, repair_connect_body},
    {"never-a-body-bad", LLHTTP_REFUSES, repair_never_a_body},
    {"never-a-body", READ_OTHERWISE, repair_never_a_body},
    {NULL, READ_OTHERWISE, NULL},
};

unsigned difference_count(void) {
    return sizeof differences / sizeof differences[0] - 1;
}

static const char *read_both(struct comparison *comparison, struct slice head) {
    reading_by_retort(&comparison->ours, head);
    reading_by_llhttp(&comparison->theirs, head);
    return reading_difference(&comparison->ours, &comparison->theirs);
}

/* Who takes less: who waits for more takes less than who accepts, and more than who refuses. */
static enum difference_side side_of(const struct comparison *comparison) {
    static const int taken[] = {
        [READING_REFUSED] = 0, [READING_INCOMPLETE] = 1, [READING_ACCEPTED] = 2};
    int ours = taken[comparison->ours.verdict], theirs = taken[comparison->theirs.verdict];
    return ours == theirs ? READ_OTHERWISE : ours < theirs ? RETORT_REFUSES : LLHTTP_REFUSES;
}

/* Repaired, the two must read the same, and not by refusing what one of them took before. */
static bool agrees(struct comparison *comparison, bool accepted) {
    struct slice head = slice_make(comparison->repaired.bytes, comparison->repaired.length);
    return read_both(comparison, head) == NULL &&
           (!accepted || comparison->ours.verdict == READING_ACCEPTED);
}

static void put_text(struct text *text, struct slice head) {
    memcpy(text->bytes, head.base, head.length);
    text->length = head.length;
}

/* The kind with that repair and that side; NULL: there is none. */
static const struct difference *kind_of(bool (*repair)(struct text *), enum difference_side side) {
    for (const struct difference *kind = differences; kind->name != NULL; kind++)
        if (kind->repair == repair && kind->side == side)
            return kind;
    return NULL;
}

/* One kind that explains all, else several of them together, of which the first has the side. */
static const struct difference *explain(struct comparison *comparison, struct slice head) {
    const struct difference *first = NULL;
    struct text *text = &comparison->repaired;
    enum difference_side side = side_of(comparison);
    bool accepted = comparison->ours.verdict == READING_ACCEPTED ||
                    comparison->theirs.verdict == READING_ACCEPTED;
    for (const struct difference *kind = differences; kind->name != NULL; kind++) {
        put_text(text, head);
        if (kind->side == side && kind->repair(text) && agrees(comparison, accepted))
            return kind;
    }
    put_text(text, head);
    for (unsigned i = 0; i < 2 * difference_count(); i++) { /* a repair may bring up another */
        const struct difference *kind = &differences[i % difference_count()];
        if (!kind->repair(text))
            continue;
        if (first == NULL)
            first = kind_of(kind->repair, side);
        if (agrees(comparison, accepted))
            return first;
    }
    return NULL;
}

/* A head that is not over for one of them is ended, so that a refusal which comes late is seen. */
static struct slice ended(struct comparison *comparison, struct slice head) {
    static const char end[] = "\r\n\r\n";
    struct text *text = &comparison->whole;
    put_text(text, head);
    if (comparison->ours.verdict != READING_INCOMPLETE &&
        comparison->theirs.verdict != READING_INCOMPLETE)
        return head;
    memcpy(text->bytes + text->length, end, sizeof end - 1);
    return slice_make(text->bytes, text->length + sizeof end - 1);
}

bool compare_heads(struct comparison *comparison, struct slice head,
                   const struct difference **kind) {
    *kind = NULL;
    comparison->what = NULL;
    if (head.length == 0 || head.length > COMPARE_MAX)
        return true;
    read_both(comparison, head);
    head = ended(comparison, head);
    comparison->what = read_both(comparison, head);
    if (comparison->what == NULL)
        return true;
    *kind = explain(comparison, head);
    return *kind != NULL;
}
