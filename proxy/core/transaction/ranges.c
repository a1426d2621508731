#include "transaction/ranges.h"

#include "cache/range.h"
#include "transaction/transaction.h"

#include <stdlib.h>

/* The ranges of a stored response that the client asked for (RFC 9110 §14.2, §15.3.7): a single
 * one as the body, several as multipart/byteranges. The bytes are sent from where they are
 * stored. */

/* The boundary is random, because nobody may be able to put it into the stored bytes. */
static struct slice make_boundary(struct transaction *transaction) {
    uint64_t random[2];
    arc4random_buf(random, sizeof random);
    return arena_printf(&transaction->arena, "%016lx%016lx", (unsigned long)random[0],
                        (unsigned long)random[1]);
}

static void set_head(struct transaction *transaction, struct http_head *head, unsigned status) {
    head->status = status;
    head->reason = slice_from(http_reason(status));
    delivery_set_head(transaction, head);
}

static void reply_unsatisfiable(struct transaction *transaction, struct reply *reply,
                                struct http_head *head, uint64_t length) {
    http_head_set(head, HTTP_CONTENT_RANGE,
                  arena_printf(&transaction->arena, "bytes */%lu", (unsigned long)length));
    set_head(transaction, head, 416);
    reply->body = NULL;
    reply->length = 0;
}

static struct slice content_range(struct transaction *transaction, const struct range *range,
                                  uint64_t length) {
    return arena_printf(&transaction->arena, "bytes %lu-%lu/%lu", (unsigned long)range->first,
                        (unsigned long)(range->first + range->count - 1), (unsigned long)length);
}

static void reply_part(struct transaction *transaction, struct reply *reply, struct http_head *head,
                       const struct range *range, const struct partial *part) {
    http_head_set(head, HTTP_CONTENT_RANGE, content_range(transaction, range, part->whole));
    set_head(transaction, head, 206);
    reply->part = true;
    reply->first = range->first - part->first;
    reply->length = (int64_t)range->count;
}

/* RFC 9110 §15.3.7.2. Returns the length of the whole body. */
static uint64_t make_parts(struct transaction *transaction, struct reply *reply,
                           struct slice boundary, struct slice type, const struct range *ranges,
                           unsigned count, const struct partial *part) {
    struct reply_part *parts = arena_alloc(&transaction->arena, count * sizeof *parts);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        struct slice place = content_range(transaction, &ranges[i], part->whole);
        parts[i].first = ranges[i].first - part->first;
        parts[i].count = ranges[i].count;
        parts[i].head = arena_printf(
            &transaction->arena, "%s--%.*s\r\n%s%.*s%sContent-Range: %.*s\r\n\r\n",
            i > 0 ? "\r\n" : "", SLICE_PRINT(boundary), type.length > 0 ? "Content-Type: " : "",
            SLICE_PRINT(type), type.length > 0 ? "\r\n" : "", SLICE_PRINT(place));
        bytes += parts[i].head.length + parts[i].count;
    }
    reply->parts = parts;
    reply->part_count = count;
    reply->tail = arena_printf(&transaction->arena, "\r\n--%.*s--\r\n", SLICE_PRINT(boundary));
    return bytes + reply->tail.length;
}

static void reply_parts(struct transaction *transaction, struct reply *reply,
                        struct http_head *head, const struct range *ranges, unsigned count,
                        const struct partial *part) {
    struct slice boundary = make_boundary(transaction);
    struct slice type = http_head_value(head, HTTP_CONTENT_TYPE);
    uint64_t bytes = make_parts(transaction, reply, boundary, type, ranges, count, part);
    http_head_set(head, HTTP_CONTENT_TYPE,
                  arena_printf(&transaction->arena, "multipart/byteranges; boundary=%.*s",
                               SLICE_PRINT(boundary)));
    set_head(transaction, head, 206);
    reply->length = (int64_t)bytes;
    transaction->net->counters.cache_multipart++;
}

void ranges_choose(struct transaction *transaction, const struct object *object,
                   struct reply *reply) {
    struct arena *arena = &transaction->arena;
    struct range_subject subject;
    unsigned count, most = transaction->settings->cache.max_ranges;
    if ((object->status != 200 && object->status != 206) || transaction->fetch.ranges_removed)
        return;
    struct partial part = {.count = (uint64_t)reply->length, .whole = (uint64_t)reply->length};
    struct http_head *head = arena_alloc(arena, sizeof *head);
    struct range *ranges = arena_alloc(arena, most * sizeof *ranges);
    object_parse_head(object, head);
    if (object->status == 206 && !partial_of_head(&part, head))
        return;
    range_subject_of(&subject, head, part.whole);
    switch (range_of_request(ranges, most, &count, transaction->request.head, &subject)) {
    case RANGE_WHOLE: return;
    case RANGE_TOO_MANY: transaction->net->counters.cache_ranges_refused++; return;
    case RANGE_UNSATISFIABLE: reply_unsatisfiable(transaction, reply, head, part.whole); return;
    case RANGE_PARTS: break;
    }
    if (!partial_holds(&part, ranges, count))
        return; /* the stored part */
    http_head_remove(head, HTTP_CONTENT_RANGE);
    if (count == 1)
        reply_part(transaction, reply, head, &ranges[0], &part);
    else
        reply_parts(transaction, reply, head, ranges, count, &part);
}
