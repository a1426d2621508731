#include "suites.h"

#include "http/chunked.h"

enum { OUT_MAX = 64 * 1024 };

/* What decoding comes to. */
struct outcome {
    enum chunked_status status;
    size_t taken, got;
    char out[OUT_MAX];
};

/* Decodes one piece of the input, standing at a guard page, with at most `window` bytes of room a
 * call; the decoder may want several calls. */
static void feed(struct chunked_decoder *decoder, struct outcome *outcome, struct slice piece,
                 size_t window) {
    struct slice input = guard_put(piece);
    for (;;) {
        size_t got, before = input.length;
        outcome->status =
            chunked_decode(decoder, &input, outcome->out + outcome->got, window, &got);
        EXPECT(got <= window, "%zu bytes written to room for %zu", got, window);
        outcome->got += got;
        outcome->taken += before - input.length;
        if (outcome->status != CHUNKED_MORE || input.length == 0)
            return;
        EXPECT(got == window, "stopped with %zu bytes of input and room left", input.length);
    }
}

static void decode(struct outcome *outcome, struct chunked_decoder *decoder, struct slice bytes,
                   size_t split, size_t window) {
    chunked_init(decoder);
    outcome->taken = outcome->got = 0;
    feed(decoder, outcome, slice_make(bytes.base, split), window);
    if (outcome->status == CHUNKED_MORE)
        feed(decoder, outcome, slice_make(bytes.base + split, bytes.length - split), window);
}

/* The body must come out whichever way the bytes come in two pieces or one by one, and however
 * little room there is for it; no shorter input may be enough, none behind it be taken. */
static void check_good(struct slice bytes, struct slice body) {
    static struct outcome outcome;
    struct chunked_decoder decoder;
    char longer[OUT_MAX];
    memcpy(longer, bytes.base, bytes.length);
    memcpy(longer + bytes.length, "0\r\n\r\n", 5);
    struct slice both = slice_make(longer, bytes.length + 5);
    static const size_t windows[] = {OUT_MAX, 1, 3};
    for (size_t w = 0; w < COUNT_OF(windows); w++) {
        for (size_t split = 0; split <= bytes.length; split++) {
            decode(&outcome, &decoder, both, split, windows[w]);
            EXPECT(outcome.status == CHUNKED_END && outcome.taken == bytes.length,
                   "\"%.*s\" split at %zu: status %d, %zu bytes taken", SLICE_PRINT(bytes), split,
                   outcome.status, outcome.taken);
            EXPECT(slice_equal(slice_make(outcome.out, outcome.got), body),
                   "\"%.*s\" split at %zu gives \"%.*s\"", SLICE_PRINT(bytes), split,
                   (int)outcome.got, outcome.out);
        }
    }
    for (size_t length = 0; length < bytes.length; length++) {
        decode(&outcome, &decoder, slice_make(bytes.base, length), length / 2, OUT_MAX);
        EXPECT(outcome.status == CHUNKED_MORE && outcome.taken == length,
               "the first %zu bytes of \"%.*s\": status %d", length, SLICE_PRINT(bytes),
               outcome.status);
    }
}

static void check_bad(struct slice bytes) {
    static struct outcome outcome;
    struct chunked_decoder decoder;
    for (size_t split = 0; split <= bytes.length; split++) {
        decode(&outcome, &decoder, bytes, split, OUT_MAX);
        EXPECT(outcome.status == CHUNKED_BAD, "\"%.*s\" split at %zu: status %d",
               SLICE_PRINT(bytes), split, outcome.status);
    }
    /* And bad it stays. */
    size_t got;
    struct slice good = SLICE("0\r\n\r\n");
    ck_assert_int_eq(chunked_decode(&decoder, &good, outcome.out, OUT_MAX, &got), CHUNKED_BAD);
    ck_assert_uint_eq(got, 0);
}

START_TEST(bodies) {
    check_good(SLICE("0\r\n\r\n"), SLICE(""));
    check_good(SLICE("5\r\nhello\r\n0\r\n\r\n"), SLICE("hello"));
    check_good(SLICE("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), SLICE("hello world"));
    check_good(SLICE("1\r\n\r\r\n1\r\n\n\r\n4\r\n\0\r\n0\r\n0\r\n\r\n"), SLICE("\r\n\0\r\n0"));
    check_good(SLICE("1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"),
               SLICE("abcdefghijklmnopqrstuvwxyz"));
    check_good(SLICE("A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n"),
               SLICE("01234567890123456789a"));
}
END_TEST

START_TEST(chunk_sizes) {
    check_good(SLICE("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n"), SLICE("hello"));
    check_good(SLICE("5  \t\r\nhello\r\n0 \r\n\r\n"), SLICE("hello"));
    check_bad(SLICE("00000000000000005\r\nhello\r\n"));
    check_bad(SLICE("00000000000000000\r\n\r\n"));
    check_bad(SLICE("8000000000000000\r\n"));
    check_bad(SLICE("ffffffffffffffff\r\n"));
    check_bad(SLICE("10000000000000005\r\nhello\r\n"));
    check_bad(SLICE("+5\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("-5\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("0x5\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE(" 5\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("5 5\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("5_0\r\nhello\r\n"));
    check_bad(SLICE("5h\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("5,\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("\r\n"));
    check_bad(SLICE("\r\n0\r\n\r\n"));
    check_bad(SLICE(";a=b\r\n"));
    check_bad(SLICE("g\r\n"));
    check_bad(SLICE("5\0\r\nhello\r\n"));
}
END_TEST

START_TEST(the_largest_size) {
    struct chunked_decoder decoder;
    struct slice input = SLICE("7fffffffffffffff\r\nabc");
    char out[8];
    size_t got;
    chunked_init(&decoder);
    ck_assert_int_eq(chunked_decode(&decoder, &input, out, sizeof out, &got), CHUNKED_MORE);
    ck_assert_uint_eq(got, 3);
    ck_assert(decoder.remaining == (uint64_t)INT64_MAX - 3);
}
END_TEST

START_TEST(line_ends) {
    check_bad(SLICE("5\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("5\rhello\r\n0\r\n\r\n"));
    check_bad(SLICE("5\r\nhello\n0\r\n\r\n"));
    check_bad(SLICE("5\r\nhello\r0\r\n\r\n"));
    check_bad(SLICE("5\r\nhello0\r\n\r\n"));
    check_bad(SLICE("5\r\nhello!\r\n0\r\n\r\n"));
    check_bad(SLICE("5\r\r\nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("5 \nhello\r\n0\r\n\r\n"));
    check_bad(SLICE("0\n\r\n"));
    check_bad(SLICE("0\n\n"));
    check_bad(SLICE("0\r\n\n"));
    check_bad(SLICE("0\r\n\rX"));
    check_bad(SLICE("0\r\n\r\r\n"));
}
END_TEST

START_TEST(extensions_are_skipped) {
    check_good(SLICE("5;a\r\nhello\r\n0;b=c\r\n\r\n"), SLICE("hello"));
    check_good(SLICE("5 ; a = b ;c=\"d;e\\\"\\\\ f\" ; g\r\nhello\r\n0\r\n\r\n"), SLICE("hello"));
    check_good(SLICE("1;ieof\r\nx\r\n1;use-original-body=5\r\ny\r\n0\r\n\r\n"), SLICE("xy"));
    check_good(SLICE("1;a=\"\"\r\nx\r\n0;a=\"\xff\t\"\r\n\r\n"), SLICE("x"));
}
END_TEST

/* A line end or a NUL inside an extension has been read in two ways. */
START_TEST(extensions_have_a_grammar) {
    check_bad(SLICE("5;\r\nhello\r\n"));
    check_bad(SLICE("5;a=\r\nhello\r\n"));
    check_bad(SLICE("5;a\nhello\r\n"));
    check_bad(SLICE("5;a=b\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\nc\"\r\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\r\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\\\r\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\\\rc\"\r\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\\\nc\"\r\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\\\0c\"\r\nhello\r\n"));
    check_bad(SLICE("5;a=\"b\"c\r\nhello\r\n"));
    check_bad(SLICE("5;a b\r\nhello\r\n"));
    check_bad(SLICE("5;a=b c\r\nhello\r\n"));
    check_bad(SLICE("5;a\rb\r\nhello\r\n"));
    check_bad(SLICE("5;a\0\r\nhello\r\n"));
    check_bad(SLICE("5;a\x7f\r\nhello\r\n"));
    check_bad(SLICE("5;=b\r\nhello\r\n"));
    check_bad(SLICE("5;a,b\r\nhello\r\n"));
}
END_TEST

START_TEST(long_lines) {
    static char bytes[GUARD_MAX];
    static struct outcome outcome;
    struct chunked_decoder decoder;
    for (size_t length = 4090; length <= 4100; length++) {
        /* The line's bytes behind the ';' of "0;", CR and no LF counted. */
        memset(bytes, 'a', sizeof bytes);
        memcpy(bytes, "0;", 2);
        memcpy(bytes + 2 + length, "\r\n\r\n", 4);
        decode(&outcome, &decoder, slice_make(bytes, length + 6), 100, OUT_MAX);
        ck_assert_int_eq(outcome.status, length < 4096 ? CHUNKED_END : CHUNKED_BAD);
    }
    for (size_t length = 16370; length <= 16390; length++) {
        memset(bytes, 'a', sizeof bytes);
        memcpy(bytes, "0\r\nA:", 5);
        memcpy(bytes + 3 + length, "\r\n\r\n", 4);
        decode(&outcome, &decoder, slice_make(bytes, length + 7), 100, OUT_MAX);
        ck_assert_int_eq(outcome.status, length + 4 <= 16384 ? CHUNKED_END : CHUNKED_BAD);
    }
    /* The limit is one of each line: many short extensions are fine. */
    char *at = bytes;
    for (int i = 0; i < 1000; i++)
        at += sprintf(at, "1;extension=value\r\nx\r\n");
    at += sprintf(at, "0\r\n\r\n");
    decode(&outcome, &decoder, slice_make(bytes, (size_t)(at - bytes)), 7, OUT_MAX);
    ck_assert_int_eq(outcome.status, CHUNKED_END);
    ck_assert_uint_eq(outcome.got, 1000);
}
END_TEST

START_TEST(trailers_are_skipped) {
    check_good(SLICE("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n"), SLICE("x"));
    check_good(SLICE("0\r\nA: \"b;c=\\\xff\t\r\n\r\n"), SLICE(""));
    check_bad(SLICE("0\r\nA\r\n\r\n"));
    check_bad(SLICE("0\r\n: b\r\n\r\n"));
    check_bad(SLICE("0\r\nA : b\r\n\r\n"));
    check_bad(SLICE("0\r\nA: b\r\n c\r\n\r\n"));
    check_bad(SLICE("0\r\nA: b\n\r\n"));
    check_bad(SLICE("0\r\nA: b\rc\r\n\r\n"));
    check_bad(SLICE("0\r\nA: \0\r\n\r\n"));
    check_bad(SLICE("0\r\n A: b\r\n\r\n"));
    check_bad(SLICE("0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"));
}
END_TEST

/* A trailer is a field line of its message: "a proxy MUST remove any such whitespace from a response
 * message" (RFC 9112 §5.1). */
START_TEST(blanks_before_the_colon_of_a_trailer) {
    static const struct {
        struct slice bytes;
        enum chunked_status status;
    } cases[] = {
        {SLICE("0\r\nA : b\r\nC\t :d\r\n\r\n"), CHUNKED_END},
        {SLICE("0\r\nA b: c\r\n\r\n"), CHUNKED_BAD},
        {SLICE("0\r\n : c\r\n\r\n"), CHUNKED_BAD},
        {SLICE("0\r\nA \r\n\r\n"), CHUNKED_BAD},
        {SLICE("0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), CHUNKED_BAD},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice input = guard_put(cases[i].bytes);
        struct chunked_decoder decoder;
        char trailers[CHUNKED_TRAILERS_MAX];
        size_t got;
        chunked_init(&decoder);
        chunked_of_response(&decoder, trailers);
        EXPECT(chunked_decode(&decoder, &input, trailers, 0, &got) == cases[i].status, "case %zu",
               i);
    }
}
END_TEST

/* Decodes in two pieces and compares what the last chunk said. */
static void check_last(struct slice bytes, bool ieof, bool has_original, uint64_t original) {
    static struct outcome outcome;
    struct chunked_decoder decoder;
    for (size_t split = 0; split <= bytes.length; split++) {
        decode(&outcome, &decoder, bytes, split, OUT_MAX);
        EXPECT(outcome.status == CHUNKED_END, "\"%.*s\" split at %zu: status %d",
               SLICE_PRINT(bytes), split, outcome.status);
        EXPECT(decoder.ieof == ieof && decoder.has_original == has_original &&
                   decoder.original == original && decoder.last,
               "\"%.*s\" split at %zu: ieof %d, original %d %llu", SLICE_PRINT(bytes), split,
               decoder.ieof, decoder.has_original, (unsigned long long)decoder.original);
    }
}

START_TEST(icap_extensions_of_the_last_chunk) {
    check_last(SLICE("0\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; ieof\r\n\r\n"), true, false, 0);
    check_last(SLICE("0;IEOF\r\n\r\n"), true, false, 0);
    check_last(SLICE("0;a=b;ieof \r\n\r\n"), true, false, 0);
    check_last(SLICE("000 ; ieof ; a\r\n\r\n"), true, false, 0);
    check_last(SLICE("0; use-original-body=0\r\n\r\n"), false, true, 0);
    check_last(SLICE("0; use-original-body=1234\r\n\r\n"), false, true, 1234);
    check_last(SLICE("0; Use-Original-Body = 12 ; ieof\r\n\r\n"), true, true, 12);
    check_last(SLICE("0; use-original-body=9223372036854775807\r\n\r\n"), false, true, INT64_MAX);
}
END_TEST

START_TEST(what_is_not_an_icap_extension) {
    check_last(SLICE("0; ieof2\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; ieo\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; ieof=1\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; a=\"; ieof\"\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; a=ieof\r\n\r\n"), false, false, 0);
    check_last(SLICE("1; ieof\r\nx\r\n0\r\n\r\n"), false, false, 0);
    check_last(SLICE("1; use-original-body=x\r\nx\r\n0\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; use-original-body-now=5; a=7\r\n\r\n"), false, false, 0);
    check_last(SLICE("0; use-original-bodyuse-original-body=5\r\n\r\n"), false, false, 0);
    check_last(SLICE("0\r\nieof: use-original-body=1\r\n\r\n"), false, false, 0);
}
END_TEST

START_TEST(bad_use_original_body) {
    check_bad(SLICE("0; use-original-body\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=x\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=5x\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=-5\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=\"5\"\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=9223372036854775808\r\n\r\n"));
    check_bad(SLICE("0; use-original-body=1; use-original-body=2\r\n\r\n"));
}
END_TEST

START_TEST(after_the_end) {
    struct chunked_decoder decoder;
    struct slice input = SLICE("0\r\n\r\nnext");
    char out[8];
    size_t got;
    chunked_init(&decoder);
    ck_assert_int_eq(chunked_decode(&decoder, &input, out, sizeof out, &got), CHUNKED_END);
    ck_assert_int_eq(chunked_decode(&decoder, &input, out, sizeof out, &got), CHUNKED_END);
    ck_assert_slice_eq(input, SLICE("next"));
    ck_assert_uint_eq(got, 0);
}
END_TEST

START_TEST(no_room_still_reads_lines) {
    struct chunked_decoder decoder;
    struct slice input = SLICE("5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\nnext");
    char out[5];
    size_t got;
    chunked_init(&decoder);
    ck_assert_int_eq(chunked_decode(&decoder, &input, NULL, 0, &got), CHUNKED_MORE);
    ck_assert_uint_eq(got, 0);
    ck_assert(decoder.remaining == 5);
    ck_assert_int_eq(chunked_decode(&decoder, &input, out, sizeof out, &got), CHUNKED_END);
    ck_assert_uint_eq(got, 5);
    ck_assert_slice_eq(input, SLICE("next"));
}
END_TEST

START_TEST(decoding_in_place) {
    struct chunked_decoder decoder;
    char bytes[] = "5\r\nhello\r\n15\r\nabcdefghijklmnopqrstu\r\n0\r\n\r\n";
    struct slice input = slice_make(bytes, sizeof bytes - 1);
    size_t got;
    chunked_init(&decoder);
    ck_assert_int_eq(chunked_decode(&decoder, &input, bytes, sizeof bytes, &got), CHUNKED_END);
    ck_assert_slice_eq(slice_make(bytes, got), SLICE("helloabcdefghijklmnopqrstu"));
}
END_TEST

START_TEST(heads_are_written) {
    static const uint64_t sizes[] = {0,   1,    9,    10,    15,       16,        255,
                                     256, 4095, 4096, 65536, 0xabcdef, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char out[CHUNKED_HEAD_MAX + 1], expected[32];
        memset(out, '?', sizeof out);
        size_t length = chunked_write_head(out, sizes[i]);
        sprintf(expected, "%llx\r\n", (unsigned long long)sizes[i]);
        ck_assert_slice_eq(slice_make(out, length), slice_from(expected));
        ck_assert_int_eq(out[length], '?');
    }
}
END_TEST

Suite *chunked_suite(void) {
    const TTest *const tests[] = {
        bodies,
        chunk_sizes,
        the_largest_size,
        line_ends,
        extensions_are_skipped,
        extensions_have_a_grammar,
        long_lines,
        trailers_are_skipped,
        blanks_before_the_colon_of_a_trailer,
        icap_extensions_of_the_last_chunk,
        what_is_not_an_icap_extension,
        bad_use_original_body,
        after_the_end,
        no_room_still_reads_lines,
        decoding_in_place,
        heads_are_written,
    };
    return suite_of("chunked", tests, COUNT_OF(tests));
}
