#include "http2/priority.h"

#include "http/structured.h"

static const struct http2_priority default_priority = {HTTP2_URGENCY_DEFAULT, false};

static void note_member(struct http2_priority *priority, const struct structured_member *member) {
    if (slice_equal(member->key, SLICE("u"))) {
        bool good = member->type == STRUCTURED_INTEGER && member->number >= 0 &&
                    member->number <= HTTP2_URGENCY_LEAST;
        priority->urgency = good ? (uint8_t)member->number : HTTP2_URGENCY_DEFAULT;
    } else if (slice_equal(member->key, SLICE("i"))) {
        priority->is_incremental = member->type == STRUCTURED_BOOLEAN && member->number != 0;
    }
}

void http2_priority_parse(struct slice value, struct http2_priority *priority) {
    struct slice rest = slice_trim(value);
    struct structured_member member;
    enum structured_status status;
    *priority = default_priority;
    while ((status = structured_next(&rest, &member)) == STRUCTURED_MEMBER)
        note_member(priority, &member);
    if (status == STRUCTURED_BAD)
        *priority = default_priority;
}
