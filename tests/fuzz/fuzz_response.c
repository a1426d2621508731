/* Responses of HTTP and of ICAP, and trailers: the first byte says which. */
#include "base/assert.h"
#include "fuzz_head.h"
#include "http/framing.h"
#include "http/head_parser.h"

static void check_framing(const struct http_head *head) {
    for (unsigned method = 0; method < HTTP_METHOD_COUNT; method++) {
        struct framing framing;
        if (!framing_of_response(&framing, head, (enum http_method)method))
            ASSERT((framing.status == 400 || framing.status == 501) && framing.error != NULL);
        else if (method == HTTP_METHOD_HEAD || head->status == 204 || head->status == 304)
            ASSERT(framing.kind == FRAMING_NONE);
        else if (framing.kind == FRAMING_CHUNKED)
            ASSERT(head->version == 11 && !http_head_has(head, HTTP_CONTENT_LENGTH));
    }
}

static ssize_t parse_fields(struct http_head *head, const char *bytes, size_t length,
                            size_t checked) {
    (void)checked;
    return http_head_parse_fields(head, bytes, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_head head;
    if (size == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    switch (data[0] % 4) {
    case 0: fuzz_head(&head, http_head_parse_icap_response, NULL, bytes, size - 1); break;
    case 1: fuzz_head(&head, parse_fields, NULL, bytes, size - 1); break;
    default:
        if (fuzz_head(&head, http_head_parse_response, http_head_write_response, bytes, size - 1) >
            0)
            check_framing(&head);
    }
    return 0;
}
