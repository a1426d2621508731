/* Frames of HTTP/2: read, judged and written. Each payload stands in front of a forbidden page. */
#include "suites.h"

#include "http2/frame.h"

enum { MOST = HTTP2_FRAME_SIZE_DEFAULT };

static struct http2_fault judge(unsigned length, unsigned type, unsigned flags, unsigned stream) {
    struct http2_frame frame = {length, (uint8_t)type, (uint8_t)flags, stream};
    return http2_frame_check(&frame, MOST);
}

START_TEST(heads_are_read_and_written) {
    char bytes[HTTP2_FRAME_HEAD];
    struct http2_frame frame;
    ck_assert_ptr_eq(http2_frame_write(bytes, 0x123456, HTTP2_HEADERS, 0x25, 0x12345678),
                     bytes + sizeof bytes);
    ck_assert_mem_eq(bytes, "\x12\x34\x56\x01\x25\x12\x34\x56\x78", sizeof bytes);
    bytes[5] |= (char)0x80; /* the reserved bit */
    http2_frame_read(&frame, guard_put(slice_make(bytes, sizeof bytes)).base);
    ck_assert_uint_eq(frame.length, 0x123456);
    ck_assert_uint_eq(frame.type, HTTP2_HEADERS);
    ck_assert_uint_eq(frame.flags, 0x25);
    ck_assert_uint_eq(frame.stream, 0x12345678);
}
END_TEST

/* RFC 9113 §6: what is wrong in the head of a frame. */
static const struct judged {
    unsigned length, type, flags, stream;
    enum http2_error error;
    bool of_stream;
} judged[] = {
    {0, HTTP2_DATA, 0, 1, HTTP2_NO_ERROR, false},
    {MOST, HTTP2_DATA, 0, 1, HTTP2_NO_ERROR, false},
    {MOST + 1, HTTP2_DATA, 0, 1, HTTP2_FRAME_SIZE_ERROR, false},
    {MOST + 1, 99, 0, 0, HTTP2_FRAME_SIZE_ERROR, false},
    {10, HTTP2_DATA, 0, 0, HTTP2_PROTOCOL_ERROR, false},
    {10, HTTP2_HEADERS, 0, 0, HTTP2_PROTOCOL_ERROR, false},
    {10, HTTP2_HEADERS, 0, 3, HTTP2_NO_ERROR, false},
    {5, HTTP2_PRIORITY, 0, 3, HTTP2_NO_ERROR, false},
    {5, HTTP2_PRIORITY, 0, 0, HTTP2_PROTOCOL_ERROR, false},
    {4, HTTP2_PRIORITY, 0, 3, HTTP2_FRAME_SIZE_ERROR, true},
    {6, HTTP2_PRIORITY, 0, 3, HTTP2_FRAME_SIZE_ERROR, true},
    {4, HTTP2_RST_STREAM, 0, 3, HTTP2_NO_ERROR, false},
    {4, HTTP2_RST_STREAM, 0, 0, HTTP2_PROTOCOL_ERROR, false},
    {3, HTTP2_RST_STREAM, 0, 3, HTTP2_FRAME_SIZE_ERROR, false},
    {0, HTTP2_SETTINGS, 0, 0, HTTP2_NO_ERROR, false},
    {12, HTTP2_SETTINGS, 0, 0, HTTP2_NO_ERROR, false},
    {13, HTTP2_SETTINGS, 0, 0, HTTP2_FRAME_SIZE_ERROR, false},
    {12, HTTP2_SETTINGS, 0, 1, HTTP2_PROTOCOL_ERROR, false},
    {0, HTTP2_SETTINGS, HTTP2_ACK, 0, HTTP2_NO_ERROR, false},
    {6, HTTP2_SETTINGS, HTTP2_ACK, 0, HTTP2_FRAME_SIZE_ERROR, false},
    {10, HTTP2_PUSH_PROMISE, 0, 1, HTTP2_PROTOCOL_ERROR, false},
    {8, HTTP2_PING, 0, 0, HTTP2_NO_ERROR, false},
    {7, HTTP2_PING, 0, 0, HTTP2_FRAME_SIZE_ERROR, false},
    {8, HTTP2_PING, 0, 1, HTTP2_PROTOCOL_ERROR, false},
    {8, HTTP2_GOAWAY, 0, 0, HTTP2_NO_ERROR, false},
    {80, HTTP2_GOAWAY, 0, 0, HTTP2_NO_ERROR, false},
    {7, HTTP2_GOAWAY, 0, 0, HTTP2_FRAME_SIZE_ERROR, false},
    {8, HTTP2_GOAWAY, 0, 1, HTTP2_PROTOCOL_ERROR, false},
    {4, HTTP2_WINDOW_UPDATE, 0, 0, HTTP2_NO_ERROR, false},
    {4, HTTP2_WINDOW_UPDATE, 0, 1, HTTP2_NO_ERROR, false},
    {5, HTTP2_WINDOW_UPDATE, 0, 1, HTTP2_FRAME_SIZE_ERROR, false},
    {10, HTTP2_CONTINUATION, 0, 1, HTTP2_NO_ERROR, false},
    {10, HTTP2_CONTINUATION, 0, 0, HTTP2_PROTOCOL_ERROR, false},
    {4, HTTP2_PRIORITY_UPDATE, 0, 0, HTTP2_NO_ERROR, false},
    {3, HTTP2_PRIORITY_UPDATE, 0, 0, HTTP2_FRAME_SIZE_ERROR, false},
    {4, HTTP2_PRIORITY_UPDATE, 0, 1, HTTP2_PROTOCOL_ERROR, false},
    {3, 99, 0xff, 0, HTTP2_NO_ERROR, false},
    {3, HTTP2_ALTSVC, 0, 1, HTTP2_NO_ERROR, false},
    {3, HTTP2_ORIGIN, 0, 1, HTTP2_NO_ERROR, false},
};

START_TEST(wrong_heads_are_refused) {
    for (size_t i = 0; i < COUNT_OF(judged); i++) {
        const struct judged *one = &judged[i];
        struct http2_fault fault = judge(one->length, one->type, one->flags, one->stream);
        ck_assert_msg(fault.error == one->error && fault.of_stream == one->of_stream, "%zu", i);
        ck_assert((fault.text == NULL) == (fault.error == HTTP2_NO_ERROR));
    }
}
END_TEST

static struct http2_fault strip(unsigned type, unsigned flags, const char *bytes, size_t length,
                                struct slice *payload) {
    struct http2_frame frame = {(uint32_t)length, (uint8_t)type, (uint8_t)flags, 5};
    *payload = guard_put(slice_make(bytes, length));
    return http2_frame_strip_padding(&frame, payload);
}

START_TEST(padding_is_stripped) {
    struct slice payload;
    ck_assert_int_eq(strip(HTTP2_DATA, 0, "\3abc", 4, &payload).error, HTTP2_NO_ERROR);
    ck_assert(slice_equal(payload, SLICE("\3abc")));
    ck_assert_int_eq(strip(HTTP2_DATA, HTTP2_PADDED, "\2abc", 4, &payload).error, HTTP2_NO_ERROR);
    ck_assert(slice_equal(payload, SLICE("a")));
    ck_assert_int_eq(strip(HTTP2_DATA, HTTP2_PADDED, "\3abc", 4, &payload).error, HTTP2_NO_ERROR);
    ck_assert_uint_eq(payload.length, 0);
    ck_assert_int_eq(strip(HTTP2_DATA, HTTP2_PADDED, "\0", 1, &payload).error, HTTP2_NO_ERROR);
    ck_assert_uint_eq(payload.length, 0);
}
END_TEST

/* §6.1: "If the length of the padding is the length of the frame payload or greater, the recipient
 * MUST treat this as a connection error (Section 5.4.1) of type PROTOCOL_ERROR." */
START_TEST(too_much_padding_is_refused) {
    struct slice payload;
    struct http2_fault fault = strip(HTTP2_DATA, HTTP2_PADDED, "\4abc", 4, &payload);
    ck_assert(fault.error == HTTP2_PROTOCOL_ERROR && !fault.of_stream);
    fault = strip(HTTP2_DATA, HTTP2_PADDED, "\1", 1, &payload);
    ck_assert_int_eq(fault.error, HTTP2_PROTOCOL_ERROR);
    fault = strip(HTTP2_DATA, HTTP2_PADDED, "\xff", 1, &payload);
    ck_assert_int_eq(fault.error, HTTP2_PROTOCOL_ERROR);
    fault = strip(HTTP2_DATA, HTTP2_PADDED, "", 0, &payload);
    ck_assert(fault.error == HTTP2_FRAME_SIZE_ERROR && !fault.of_stream);
    /* the priority leaves less room for padding */
    fault = strip(HTTP2_HEADERS, HTTP2_PADDED | HTTP2_HAS_PRIORITY, "\2\0\0\0\1\20a", 7, &payload);
    ck_assert_int_eq(fault.error, HTTP2_PROTOCOL_ERROR);
}
END_TEST

START_TEST(priorities_are_stripped) {
    struct slice payload;
    struct http2_fault fault =
        strip(HTTP2_HEADERS, HTTP2_PADDED | HTTP2_HAS_PRIORITY, "\1\0\0\0\1\20ab", 8, &payload);
    ck_assert_int_eq(fault.error, HTTP2_NO_ERROR);
    ck_assert(slice_equal(payload, SLICE("a")));
    /* the flag means nothing in DATA */
    fault = strip(HTTP2_DATA, HTTP2_HAS_PRIORITY, "abc", 3, &payload);
    ck_assert(fault.error == HTTP2_NO_ERROR && slice_equal(payload, SLICE("abc")));
    fault = strip(HTTP2_HEADERS, HTTP2_HAS_PRIORITY, "\0\0\0\1", 4, &payload);
    ck_assert(fault.error == HTTP2_FRAME_SIZE_ERROR && !fault.of_stream);
    /* "A stream cannot depend on itself" (RFC 7540 §5.3.1), with the exclusive bit as well */
    fault = strip(HTTP2_HEADERS, HTTP2_HAS_PRIORITY, "\x80\0\0\5\20ab", 7, &payload);
    ck_assert(fault.error == HTTP2_PROTOCOL_ERROR && fault.of_stream);
    ck_assert(slice_equal(payload, SLICE("ab")));
    struct http2_frame frame = {5, HTTP2_PRIORITY, 0, 5};
    ck_assert(http2_frame_read_priority(&frame, "\0\0\0\5\20").of_stream);
    ck_assert_int_eq(http2_frame_read_priority(&frame, "\0\0\0\7\20").error, HTTP2_NO_ERROR);
}
END_TEST

START_TEST(windows_are_read) {
    uint32_t increment;
    struct http2_frame frame = {4, HTTP2_WINDOW_UPDATE, 0, 1};
    ck_assert_int_eq(http2_frame_read_window_update(&frame, "\xff\xff\xff\xff", &increment).error,
                     HTTP2_NO_ERROR);
    ck_assert_uint_eq(increment, HTTP2_WINDOW_MOST);
    struct http2_fault fault = http2_frame_read_window_update(&frame, "\x80\0\0\0", &increment);
    ck_assert(fault.error == HTTP2_PROTOCOL_ERROR && fault.of_stream);
    frame.stream = 0;
    fault = http2_frame_read_window_update(&frame, "\0\0\0\0", &increment);
    ck_assert(fault.error == HTTP2_PROTOCOL_ERROR && !fault.of_stream);
}
END_TEST

START_TEST(settings_are_read_and_judged) {
    static const struct {
        unsigned id;
        uint32_t value;
        enum http2_error error;
    } settings[] = {
        {HTTP2_SETTING_HEADER_TABLE_SIZE, UINT32_MAX, HTTP2_NO_ERROR},
        {HTTP2_SETTING_ENABLE_PUSH, 1, HTTP2_NO_ERROR},
        {HTTP2_SETTING_ENABLE_PUSH, 2, HTTP2_PROTOCOL_ERROR},
        {HTTP2_SETTING_INITIAL_WINDOW_SIZE, 0x7fffffff, HTTP2_NO_ERROR},
        {HTTP2_SETTING_INITIAL_WINDOW_SIZE, 0x80000000, HTTP2_FLOW_CONTROL_ERROR},
        {HTTP2_SETTING_MAX_FRAME_SIZE, 16383, HTTP2_PROTOCOL_ERROR},
        {HTTP2_SETTING_MAX_FRAME_SIZE, 16384, HTTP2_NO_ERROR},
        {HTTP2_SETTING_MAX_FRAME_SIZE, 16777215, HTTP2_NO_ERROR},
        {HTTP2_SETTING_MAX_FRAME_SIZE, 16777216, HTTP2_PROTOCOL_ERROR},
        {HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL, 2, HTTP2_PROTOCOL_ERROR},
        {HTTP2_SETTING_NO_RFC7540_PRIORITIES, 2, HTTP2_PROTOCOL_ERROR},
        {0x1234, 77, HTTP2_NO_ERROR},
    };
    char bytes[COUNT_OF(settings) * HTTP2_SETTING_SIZE], *at = bytes;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        at = http2_frame_put_setting(at, settings[i].id & 0xff, settings[i].value);
        at[-6] = (char)(settings[i].id >> 8);
    }
    struct slice payload = guard_put(slice_make(bytes, sizeof bytes));
    uint16_t id;
    uint32_t value;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        ck_assert(http2_frame_next_setting(&payload, &id, &value));
        ck_assert_uint_eq(id, settings[i].id);
        ck_assert_uint_eq(value, settings[i].value);
        ck_assert_msg(http2_setting_check(id, value).error == settings[i].error, "%zu", i);
    }
    ck_assert(!http2_frame_next_setting(&payload, &id, &value));
}
END_TEST

START_TEST(whole_frames_are_written) {
    char bytes[100];
    char *end = http2_frame_put_rst_stream(bytes, 7, HTTP2_CANCEL);
    ck_assert_mem_eq(bytes, "\0\0\4\3\0\0\0\0\7\0\0\0\10", 13);
    ck_assert_int_eq(end - bytes, 13);
    end = http2_frame_put_window_update(bytes, 0, 65536);
    ck_assert_mem_eq(bytes, "\0\0\4\10\0\0\0\0\0\0\1\0\0", 13);
    ck_assert_int_eq(end - bytes, 13);
    end = http2_frame_put_settings_ack(bytes);
    ck_assert_mem_eq(bytes, "\0\0\0\4\1\0\0\0\0", 9);
    ck_assert_int_eq(end - bytes, 9);
    end = http2_frame_put_ping(bytes, true, "12345678");
    ck_assert_mem_eq(bytes,
                     "\0\0\10\6\1\0\0\0\0"
                     "12345678",
                     17);
    ck_assert_int_eq(end - bytes, 17);
    end = http2_frame_put_goaway(bytes, 9, HTTP2_ENHANCE_YOUR_CALM, SLICE("why"));
    ck_assert_mem_eq(bytes, "\0\0\13\7\0\0\0\0\0\0\0\0\11\0\0\0\13why", 20);
    ck_assert_int_eq(end - bytes, 20);
    uint32_t last, error;
    struct slice text, payload = guard_put(slice_make(bytes + 9, 11));
    http2_frame_read_goaway(payload, &last, &error, &text);
    ck_assert(last == 9 && error == HTTP2_ENHANCE_YOUR_CALM && slice_equal(text, SLICE("why")));
}
END_TEST

START_TEST(priority_updates_are_read) {
    uint32_t stream;
    struct slice value, payload = guard_put(slice_make("\x80\0\0\7u=1", 7));
    ck_assert_int_eq(http2_frame_read_priority_update(payload, &stream, &value).error,
                     HTTP2_NO_ERROR);
    ck_assert(stream == 7 && slice_equal(value, SLICE("u=1")));
    payload = guard_put(slice_make("\0\0\0\0", 4));
    ck_assert_int_eq(http2_frame_read_priority_update(payload, &stream, &value).error,
                     HTTP2_PROTOCOL_ERROR);
}
END_TEST

START_TEST(names_are_of_the_rfc) {
    ck_assert(slice_equal(http2_error_name(0), SLICE("NO_ERROR")));
    ck_assert(slice_equal(http2_error_name(0xb), SLICE("ENHANCE_YOUR_CALM")));
    ck_assert(slice_equal(http2_error_name(0xd), SLICE("HTTP_1_1_REQUIRED")));
    ck_assert(slice_equal(http2_error_name(0xe), SLICE("unknown")));
    ck_assert(slice_equal(http2_error_name(UINT32_MAX), SLICE("unknown")));
}
END_TEST

Suite *http2_frame_suite(void) {
    const TTest *const tests[] = {
        heads_are_read_and_written,   wrong_heads_are_refused,  padding_is_stripped,
        too_much_padding_is_refused,  priorities_are_stripped,  windows_are_read,
        settings_are_read_and_judged, whole_frames_are_written, priority_updates_are_read,
        names_are_of_the_rfc,
    };
    return suite_of("http2_frame", tests, COUNT_OF(tests));
}
