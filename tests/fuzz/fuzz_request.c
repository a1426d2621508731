/* Requests: the head, and that its framing is what one reading of it allows. */
#include "base/assert.h"
#include "fuzz_head.h"
#include "http/framing.h"
#include "http/head_parser.h"

static void check_framing(const struct http_head *head) {
    struct framing framing;
    framing_keeps_alive(head);
    if (!framing_of_request(&framing, head)) {
        ASSERT((framing.status == 400 || framing.status == 501) && framing.error != NULL);
        return;
    }
    bool length = http_head_has(head, HTTP_CONTENT_LENGTH);
    bool coding = http_head_has(head, HTTP_TRANSFER_ENCODING);
    ASSERT(framing.kind != FRAMING_CLOSE);
    ASSERT(!(length && coding));
    if (framing.kind == FRAMING_CHUNKED)
        ASSERT(coding && head->version == 11);
    else if (framing.kind == FRAMING_LENGTH)
        ASSERT(length && framing.length <= INT64_MAX);
    else
        ASSERT(head->method_id == HTTP_METHOD_CONNECT || (!length && !coding));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_head head;
    if (fuzz_head(&head, http_head_parse_request, http_head_write_request, (const char *)data,
                  size) > 0)
        check_framing(&head);
    return 0;
}
