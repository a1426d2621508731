#include "adapt/stated_length.h"

#include "http/framing.h"

const char stated_length_too_long[] = "its body is longer than the length that it stated";
const char stated_length_no_body[] = "it stated a length, and sent no body";
static const char stated_length_too_short[] = "its body is shorter than the length that it stated";

static bool is_response(const struct http_head *head) {
    return head->status != 0;
}

int64_t stated_length_of_head(const struct http_head *head, enum http_method method) {
    struct framing framing;
    bool sound = is_response(head) ? framing_of_response(&framing, head, method)
                                   : framing_of_request(&framing, head);
    return sound && framing.kind == FRAMING_LENGTH ? (int64_t)framing.length : -1;
}

void stated_length_init(struct stated_length *stated, const struct http_head *given,
                        int64_t length) {
    stated->before = http_head_has(given, HTTP_CONTENT_LENGTH) ? length : -1;
    stated->status = given->status;
    stated_length_forget(stated);
}

void stated_length_forget(struct stated_length *stated) {
    *stated =
        (struct stated_length){.before = stated->before, .status = stated->status, .exact = -1};
}

void stated_length_set(struct stated_length *stated, uint64_t length) {
    ASSERT(length <= INT64_MAX);
    stated->exact = (int64_t)length;
    stated->least = length;
}

void stated_length_take(struct stated_length *stated, const struct http_head *adapted,
                        enum http_method method) {
    int64_t length = stated_length_of_head(adapted, method);
    if (length < 0)
        return;
    stated_length_set(stated, (uint64_t)length);
    if (stated->status == 0 || stated->before != length)
        return;
    stated->exact = -1; /* it was left behind */
    if (adapted->status != stated->status)
        stated->least = 0;
}

static enum source_status contradicts(struct stated_length *stated, const char *error) {
    stated->error = error;
    return SOURCE_FAILED;
}

/* Gives the last byte only when it is known that nothing follows it. */
static enum source_status read_last(struct stated_length *stated, stated_length_reader *read,
                                    void *call, char *buffer, size_t *got) {
    char spare;
    enum source_status status;
    if (!stated->last_there && stated->given < stated->least) {
        status = read(call, &stated->last, 1, got);
        *got = 0;
        if (status == SOURCE_END)
            return contradicts(stated, stated_length_too_short);
        if (status != SOURCE_DATA)
            return status;
        stated->last_there = true;
    }
    status = read(call, &spare, 1, got);
    *got = 0;
    if (status == SOURCE_DATA)
        return contradicts(stated, stated_length_too_long);
    if (status != SOURCE_END || !stated->last_there)
        return status;
    stated->last_there = false;
    stated->given++;
    *buffer = stated->last;
    *got = 1;
    return SOURCE_DATA;
}

enum source_status stated_length_read(struct stated_length *stated, stated_length_reader *read,
                                      void *call, char *buffer, size_t capacity, size_t *got) {
    *got = 0;
    if (stated->error != NULL)
        return SOURCE_FAILED;
    if (stated->exact >= 0) {
        uint64_t left = (uint64_t)stated->exact - stated->given;
        if (left <= 1)
            return read_last(stated, read, call, buffer, got);
        capacity = capacity < left - 1 ? capacity : (size_t)(left - 1);
    }
    enum source_status status = read(call, buffer, capacity, got);
    stated->given += *got;
    if (status == SOURCE_END && stated->given < stated->least)
        return contradicts(stated, stated_length_too_short);
    return status;
}
