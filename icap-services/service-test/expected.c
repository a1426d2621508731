#include "service-test/expected.h"

#include "base/assert.h"
#include "base/slice.h"
#include "http/head_parser.h"
#include "service-test/call.h"

#include <brotli/decode.h>
#include <inttypes.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

enum { DECODED_MOST = 256 << 20, DECODED_STEP = 64 * 1024 };

struct decoded {
    char *bytes;
    size_t length, room;
};

static char *decoded_room(struct decoded *decoded) {
    if (decoded->room - decoded->length < DECODED_STEP)
        decoded->bytes = xrealloc(decoded->bytes, decoded->room = 2 * decoded->room + DECODED_STEP);
    return decoded->bytes + decoded->length;
}

static bool decode_gzip(struct decoded *decoded, struct slice body) {
    enum { GZIP_WINDOW = 16 + MAX_WBITS };
    z_stream stream = {.next_in = (Bytef *)body.base, .avail_in = (uInt)body.length};
    int status = Z_OK;
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return false;
    while (status == Z_OK && decoded->length < DECODED_MOST) {
        stream.next_out = (Bytef *)decoded_room(decoded);
        stream.avail_out = DECODED_STEP;
        status = inflate(&stream, Z_NO_FLUSH);
        decoded->length += DECODED_STEP - stream.avail_out;
    }
    bool whole = status == Z_STREAM_END && stream.avail_in == 0;
    inflateEnd(&stream);
    return whole;
}

static bool decode_brotli(struct decoded *decoded, struct slice body) {
    BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    BrotliDecoderResult status = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    const uint8_t *in = (const uint8_t *)body.base;
    size_t in_length = body.length;
    while (state != NULL && status == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT &&
           decoded->length < DECODED_MOST) {
        uint8_t *out = (uint8_t *)decoded_room(decoded);
        size_t room = DECODED_STEP;
        status = BrotliDecoderDecompressStream(state, &in_length, &in, &room, &out, NULL);
        decoded->length += DECODED_STEP - room;
    }
    if (state != NULL)
        BrotliDecoderDestroyInstance(state);
    return status == BROTLI_DECODER_RESULT_SUCCESS && in_length == 0;
}

static bool decode_zstd(struct decoded *decoded, struct slice body) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {body.base, body.length, 0};
    size_t status = 1;
    bool full = true;
    while (stream != NULL && status != 0 && !ZSTD_isError(status) && (in.pos < in.size || full) &&
           decoded->length < DECODED_MOST) {
        ZSTD_outBuffer out = {decoded_room(decoded), DECODED_STEP, 0};
        status = ZSTD_decompressStream(stream, &out, &in);
        full = out.pos == out.size;
        decoded->length += out.pos;
    }
    ZSTD_freeDStream(stream);
    return status == 0 && in.pos == in.size;
}

static char *decoded_body(struct slice coding, struct slice body, size_t *length) {
    struct decoded decoded = {NULL, 0, 0};
    decoded_room(&decoded);
    bool good = slice_equal_nocase(coding, SLICE("gzip"))   ? decode_gzip(&decoded, body)
                : slice_equal_nocase(coding, SLICE("br"))   ? decode_brotli(&decoded, body)
                : slice_equal_nocase(coding, SLICE("zstd")) ? decode_zstd(&decoded, body)
                                                            : false;
    *length = decoded.length;
    if (!good) {
        free(decoded.bytes);
        return NULL;
    }
    return decoded.bytes;
}

void test_expected_init(struct test_expected *expected, const struct test_message *message,
                        struct test_message_report *report, unsigned preview_size, bool may_fail) {
    *expected = (struct test_expected){.message = message, .report = report, .may_fail = may_fail};
    expected->previews = 2 * ((size_t)preview_size + 2);
    expected->by_preview = xcalloc(expected->previews, 1);
}

void test_expected_release(struct test_expected *expected) {
    free(expected->by_preview);
    test_result_release(&expected->first);
    *expected = (struct test_expected){0};
}

/* ---- differences in words ----------------------------------------------------------------- */

enum { SHOWN = 24, SHOWN_TEXT = 4 * SHOWN + 8 };

/* Some bytes from a place on, as they can be printed. */
static const char *shown(struct slice bytes, size_t at, char text[SHOWN_TEXT]) {
    size_t used = 0;
    if (at >= bytes.length)
        return "nothing more";
    text[used++] = '"';
    for (size_t i = at; i < bytes.length && i < at + SHOWN; i++) {
        unsigned char byte = (unsigned char)bytes.base[i];
        bool plain = byte >= ' ' && byte <= '~' && byte != '\\' && byte != '"';
        used += (size_t)snprintf(text + used, SHOWN_TEXT - used, plain ? "%c" : "\\x%02x", byte);
    }
    snprintf(text + used, SHOWN_TEXT - used, "\"");
    return text;
}

/* True when they are the same. */
static bool expected_same_bytes(struct slice a, struct slice b, size_t *at) {
    size_t least = a.length < b.length ? a.length : b.length;
    *at = 0;
    while (*at < least && a.base[*at] == b.base[*at])
        ++*at;
    return *at == least && a.length == b.length;
}

static void complain_of_body(const struct test_expected *expected, struct slice is,
                             struct slice usual, size_t at) {
    char here[SHOWN_TEXT], there[SHOWN_TEXT];
    if (usual.base == expected->message->body.base)
        test_call_complain_at(FINDING_DIFFERS, at,
                              "the service said SKIP, but the body differs from the original at "
                              "byte %zu: here comes %s, in place of %s. It has %zu bytes of %zu",
                              at, shown(is, at, here), shown(usual, at, there), is.length,
                              usual.length);
    else
        test_call_complain_at(FINDING_DIFFERS, at,
                              "the body differs at byte %zu: here comes %s, with \"%s\" %s. It has "
                              "%zu bytes here, %zu there",
                              at, shown(is, at, here), expected->first_plan,
                              shown(usual, at, there), is.length, usual.length);
}

/* ---- comparing ---------------------------------------------------------------------------- */

static struct slice result_body(const struct test_result *result) {
    return slice_make(result->body, result->length);
}

static struct slice coding_of(const struct test_result *result) {
    struct http_head head;
    bool is_response = slice_starts_with(result->head, SLICE("HTTP/"));
    ssize_t used = is_response
                       ? http_head_parse_response(&head, result->head.base, result->head.length, 0)
                       : http_head_parse_request(&head, result->head.base, result->head.length, 0);
    return used > 0 ? http_head_value(&head, HTTP_CONTENT_ENCODING) : SLICE("");
}

/* What comes when the service released bytes early may be compressed otherwise. */
static bool same_meaning(const struct test_expected *expected, const struct test_result *result,
                         size_t *at) {
    struct slice coding = coding_of(result);
    size_t length, usual_length;
    char *bytes = decoded_body(coding, result_body(result), &length);
    char *usual = decoded_body(coding, result_body(&expected->first), &usual_length);
    bool same = bytes != NULL && usual != NULL &&
                expected_same_bytes(slice_make(bytes, length), slice_make(usual, usual_length), at);
    free(bytes);
    free(usual);
    return same;
}

/* A run that was cut short has the beginning of the result. */
static void compare_bodies(const struct test_expected *expected, const struct test_plan *plan,
                           const struct test_result *result, struct slice usual) {
    struct slice is = result_body(result);
    size_t at;
    bool same = expected_same_bytes(is, usual, &at);
    if (same || (result->cut_short && at == is.length))
        return;
    if (plan->idle && (result->cut_short || same_meaning(expected, result, &at)))
        return;
    complain_of_body(expected, is, usual, at);
}

static void compare_heads(const struct test_expected *expected, const struct test_result *result) {
    struct slice rest = result->head, usual = expected->first.head, line, usual_line;
    if (slice_equal(rest, usual))
        return;
    while (slice_next_line(&rest, &line) && slice_next_line(&usual, &usual_line))
        if (!slice_equal(line, usual_line))
            break;
    test_call_complain(
        FINDING_DIFFERS, "the head differs: here it has \"%.*s\", with \"%s\" it has \"%.*s\"",
        (int)(line.length < 200 ? slice_trim(line).length : 200), line.base, expected->first_plan,
        (int)(usual_line.length < 200 ? slice_trim(usual_line).length : 200), usual_line.base);
}

static void expected_take_first(struct test_expected *expected, const struct test_plan *plan,
                                const struct test_result *result) {
    expected->first = *result;
    expected->first.head = slice_make(slice_dup(result->head), result->head.length);
    expected->first.body = xmalloc(result->length + 1);
    if (result->length > 0)
        memcpy(expected->first.body, result->body, result->length);
    test_plan_write(plan, expected->first_plan);
}

static void compare_adapted(struct test_expected *expected, const struct test_plan *plan,
                            const struct test_result *result) {
    bool is_full = !result->cut_short && !plan->idle;
    if (expected->first.outcome == OUTCOME_NONE) {
        if (is_full)
            expected_take_first(expected, plan, result);
        return;
    }
    compare_heads(expected, result);
    compare_bodies(expected, plan, result, result_body(&expected->first));
}

/* Among plans with the same preview, the service has to decide in the same way. */
static bool same_outcome(struct test_expected *expected, const struct test_plan *plan,
                         const struct test_result *result) {
    size_t place = (size_t)(2 * (plan->preview + 1) + plan->end);
    if (place >= expected->previews)
        return true; /* a plan of the user's with a larger preview than the service wants */
    enum test_outcome known = expected->by_preview[place];
    if (known == OUTCOME_NONE)
        expected->by_preview[place] = (unsigned char)result->outcome;
    if (known == OUTCOME_NONE || known == result->outcome)
        return true;
    test_call_complain(FINDING_DIFFERS,
                       "the message is %s here, and %s with other plans that have the same preview",
                       test_outcome_text(result->outcome), test_outcome_text(known));
    return false;
}

static void check_failed(const struct test_expected *expected, const struct test_result *result) {
    snprintf(expected->report->failed_because, sizeof expected->report->failed_because, "%s",
             result->failed_because);
    if (!expected->may_fail)
        test_call_complain(FINDING_FAILED,
                           "the service says that it can't adapt: %s. A service with helpers needs "
                           "--helper; --may-fail accepts it",
                           result->failed_because);
}

void test_expected_check(struct test_expected *expected, const struct test_plan *plan,
                         const struct test_result *result) {
    struct test_message_report *report = expected->report;
    if (result->failed)
        check_failed(expected, result);
    if (result->outcome == OUTCOME_NONE || result->outcome == OUTCOME_BROKEN)
        return;
    bool unchanged = result->outcome == OUTCOME_UNCHANGED;
    if (unchanged)
        compare_bodies(expected, plan, result, expected->message->body);
    if (result->failed || !same_outcome(expected, plan, result))
        return;
    if (report->outcome == OUTCOME_NONE)
        report->outcome = result->outcome;
    else if (report->outcome != result->outcome)
        report->by_preview = true;
    if (!unchanged && result->outcome != OUTCOME_ABORTED)
        compare_adapted(expected, plan, result);
}
