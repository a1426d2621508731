#include "suites.h"

#include "gzip/encoder.h"
#include "gzip/sample.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

enum { SIZE = 1 << 20 };

static const int levels[CODING_COUNT] = {6, 5, 6};

/* For the encoders of one test. */
static struct spare_encoders *spare;

static void make_spare(void) {
    spare = spare_encoders_new();
}

static void free_spare(void) {
    spare_encoders_free(&spare);
}

static void fill(unsigned char *bytes, size_t length) {
    unsigned state = 7;
    for (size_t i = 0; i < length; i++) {
        state = state * 1103515245u + 12345u;
        bytes[i] = i % 3 == 0 ? (unsigned char)(state >> 16) : (unsigned char)('a' + i % 17);
    }
}

/* Feeds pieces of `in_step`, takes pieces of `out_step`, flushes behind every piece of which
 * `flush` divides the number; returns the compressed length. */
static size_t compress_by(enum coding coding, const unsigned char *bytes, size_t length, char *out,
                          size_t capacity, size_t in_step, size_t out_step, unsigned flush) {
    struct encoder *encoder = encoder_create(spare, coding, levels[coding], length);
    size_t in = 0, got = 0;
    bool finished = false;
    for (unsigned turn = 1; !encoder_done(encoder); turn++) {
        size_t step = length - in < in_step ? length - in : in_step;
        size_t took = 0;
        if (step > 0)
            took = encoder_push(encoder, slice_make((const char *)bytes + in, step));
        in += took;
        if (flush > 0 && turn % flush == 0)
            encoder_flush(encoder);
        if (in == length && !finished) {
            encoder_finish(encoder);
            finished = true;
        }
        size_t room = capacity - got < out_step ? capacity - got : out_step;
        size_t pulled = encoder_pull(encoder, out + got, room);
        EXPECT(took + pulled > 0 || encoder_done(encoder) || step == 0, "stuck at %zu", in);
        got += pulled;
    }
    ck_assert(!encoder_failed(encoder));
    encoder_free(&encoder);
    ck_assert_ptr_null(encoder);
    return got;
}

static size_t inflate_all(const char *packed, size_t packed_length, unsigned char *out,
                          size_t room) {
    z_stream stream = {.next_in = (unsigned char *)packed,
                       .avail_in = (unsigned)packed_length,
                       .next_out = out,
                       .avail_out = (unsigned)room};
    ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    int result = inflate(&stream, Z_FINISH);
    ck_assert(result == Z_STREAM_END || result == Z_BUF_ERROR);
    inflateEnd(&stream);
    return stream.total_out;
}

static size_t unbrotli(const char *packed, size_t packed_length, unsigned char *out, size_t room) {
    BrotliDecoderState *decoder = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const unsigned char *in = (const unsigned char *)packed;
    size_t left = room;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(decoder, &packed_length, &in, &left, &out, NULL);
    ck_assert_int_ne(result, BROTLI_DECODER_RESULT_ERROR);
    BrotliDecoderDestroyInstance(decoder);
    return room - left;
}

static size_t unzstd(const char *packed, size_t packed_length, unsigned char *out, size_t room) {
    ZSTD_DStream *decoder = ZSTD_createDStream();
    ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, 23); /* what browsers take: 8 MB */
    ZSTD_inBuffer in = {packed, packed_length, 0};
    ZSTD_outBuffer to = {out, room, 0};
    size_t last, before;
    do {
        before = in.pos + to.pos;
        last = ZSTD_decompressStream(decoder, &to, &in);
        ck_assert(!ZSTD_isError(last));
    } while (in.pos + to.pos > before);
    ZSTD_freeDStream(decoder);
    return to.pos;
}

static void expect_original(enum coding coding, const char *packed, size_t packed_length,
                            const unsigned char *bytes, size_t length) {
    size_t (*const decoders[])(const char *, size_t, unsigned char *, size_t) = {inflate_all,
                                                                                 unbrotli, unzstd};
    unsigned char *back = malloc(length + 1);
    ck_assert_uint_eq(decoders[coding](packed, packed_length, back, length + 1), length);
    ck_assert_int_eq(memcmp(back, bytes, length), 0);
    free(back);
}

START_TEST(any_steps_give_the_original) {
    static const size_t steps[][2] = {{1 << 22, 4064}, {4064, 4064}, {4096, 7}, {100000, 65536}};
    enum coding coding = (enum coding)_i;
    unsigned char *bytes = malloc(SIZE);
    char *packed = malloc(2 * SIZE);
    fill(bytes, SIZE);
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        for (unsigned flush = 0; flush <= 3; flush += 3) {
            size_t length =
                compress_by(coding, bytes, SIZE, packed, 2 * SIZE, steps[i][0], steps[i][1], flush);
            expect_original(coding, packed, length, bytes, SIZE);
        }
    size_t small = compress_by(coding, bytes, 5000, packed, 2 * SIZE, 1, 1, 0);
    expect_original(coding, packed, small, bytes, 5000);
    free(bytes);
    free(packed);
}
END_TEST

START_TEST(an_empty_body_is_a_stream) {
    char packed[100];
    size_t length =
        compress_by((enum coding)_i, (const unsigned char *)"", 0, packed, sizeof packed, 1, 1, 0);
    ck_assert_uint_gt(length, 0);
    expect_original((enum coding)_i, packed, length, (const unsigned char *)"", 0);
}
END_TEST

/* Nobody pulls: push has to stop taking. */
START_TEST(memory_is_bounded) {
    unsigned char *bytes = malloc(8 * SIZE);
    fill(bytes, 8 * SIZE);
    struct encoder *encoder = encoder_create(spare, (enum coding)_i, 1, CODEC_LENGTH_UNKNOWN);
    size_t took = 0, last;
    do {
        last = encoder_push(encoder, slice_make((char *)bytes + took, 8 * SIZE - took));
        took += last;
    } while (last > 0 && took < 8 * SIZE);
    ck_assert_uint_lt(took, 4 * SIZE);
    encoder_free(&encoder);
    free(bytes);
}
END_TEST

/* What was flushed can be read by a client that has nothing more. */
START_TEST(a_flush_lets_everything_out) {
    enum coding coding = (enum coding)_i;
    unsigned char bytes[3000];
    char packed[8000];
    size_t got = 0;
    fill(bytes, sizeof bytes);
    struct encoder *encoder = encoder_create(spare, coding, levels[coding], CODEC_LENGTH_UNKNOWN);
    for (size_t in = 0; in < sizeof bytes; in += 1000) {
        ck_assert_uint_eq(encoder_push(encoder, slice_make((char *)bytes + in, 1000)), 1000);
        ck_assert_uint_eq(encoder_held(encoder), 1000);
        encoder_flush(encoder);
        ck_assert_uint_eq(encoder_held(encoder), 0);
        got += encoder_pull(encoder, packed + got, sizeof packed - got);
        expect_original(coding, packed, got, bytes, in + 1000);
        encoder_flush(encoder); /* nothing inside: costs nothing */
        ck_assert_uint_eq(encoder_pull(encoder, packed + got, sizeof packed - got), 0);
    }
    encoder_free(&encoder);
}
END_TEST

/* A state that another body had, whole or broken off, at another level, makes the bytes that a new
 * one makes. */
START_TEST(a_spare_state_is_as_new) {
    enum coding coding = (enum coding)_i;
    unsigned char *bytes = malloc(SIZE);
    char *packed = malloc(2 * SIZE), *again = malloc(2 * SIZE);
    fill(bytes, SIZE);
    size_t length = compress_by(coding, bytes, 100000, packed, 2 * SIZE, 4096, 4064, 0);
    for (int round = 0; round < 4; round++) {
        struct encoder *broken_off = encoder_create(spare, coding, 1, CODEC_LENGTH_UNKNOWN);
        ck_assert_uint_gt(encoder_push(broken_off, slice_make((char *)bytes + 7, 30000)), 0);
        if (round % 2 == 1)
            encoder_flush(broken_off);
        encoder_pull(broken_off, again, 100);
        encoder_free(&broken_off);
        size_t later = compress_by(coding, bytes, 100000, again, 2 * SIZE, 4096, 4064, 0);
        ck_assert_uint_eq(later, length);
        ck_assert_mem_eq(again, packed, length);
    }
    free(bytes);
    free(packed);
    free(again);
}
END_TEST

/* More at a time than are kept. */
START_TEST(spare_encoders_are_few) {
    enum coding coding = (enum coding)_i;
    struct encoder *encoders[SPARE_ENCODERS + 2], *first;
    for (size_t i = 0; i < COUNT_OF(encoders); i++)
        ck_assert_ptr_nonnull(encoders[i] = encoder_create(spare, coding, 1, 1000));
    first = encoders[0];
    for (size_t i = 0; i < COUNT_OF(encoders); i++) {
        encoder_free(&encoders[i]);
        ck_assert_ptr_null(encoders[i]);
    }
    unsigned kept = 0;
    bool found = false;
    for (; (encoders[kept] = spare_encoders_take(spare, coding)) != NULL; kept++)
        found = found || encoders[kept] == first;
    bool can_be_kept = codec_of(coding)->renew != NULL;
    ck_assert(found == can_be_kept);
    ck_assert_uint_eq(kept, can_be_kept ? SPARE_ENCODERS : 0);
    for (unsigned i = 0; i < kept; i++)
        encoder_free(&encoders[i]);
}
END_TEST

START_TEST(codings_by_name) {
    ck_assert_int_eq(coding_named(SLICE("BR")), CODING_BROTLI);
    ck_assert_int_eq(coding_named(SLICE("zstd")), CODING_ZSTD);
    ck_assert_int_eq(coding_named(SLICE("gzip")), CODING_GZIP);
    ck_assert_int_eq(coding_named(SLICE("deflate")), CODING_COUNT);
}
END_TEST

static void fill_at_random(char *text, size_t length, unsigned different) {
    unsigned state = 3;
    for (size_t i = 0; i < length; i++) {
        state = state * 1103515245u + 12345u;
        text[i] = (char)('0' + (state >> 16) % different);
    }
}

START_TEST(gains) {
    char text[1024];
    struct slice sample = slice_make(text, sizeof text);
    memset(text, 'x', sizeof text);
    ck_assert(sample_gains(sample, 80));
    ck_assert(sample_gains(SLICE("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), 60));
    fill_at_random(text, sizeof text, 256);
    ck_assert(!sample_gains(sample, 1));
    fill_at_random(text, sizeof text, 16);
    ck_assert(sample_gains(sample, 40));
    ck_assert(!sample_gains(sample, 60));
    ck_assert(sample_gains(SLICE(""), 99));
}
END_TEST

/* Each byte occurs equally often, so that only the repetition makes it smaller. */
START_TEST(gains_by_repetition) {
    char text[1024];
    fill_at_random(text, 256, 256);
    for (size_t i = 256; i < sizeof text; i++)
        text[i] = text[i - 256];
    ck_assert(sample_gains(slice_make(text, sizeof text), 50));
}
END_TEST

/* What the counts promise, the compressor keeps. */
START_TEST(gains_are_kept) {
    char text[SAMPLE_MAX], out[2 * SAMPLE_MAX];
    for (unsigned different = 2; different <= 256; different++)
        for (size_t length = 64; length <= sizeof text; length *= 4) {
            fill_at_random(text, length, different);
            unsigned percent = 99;
            while (percent > 0 && !sample_gains(slice_make(text, length), percent))
                percent--;
            uLongf made = sizeof out;
            ck_assert_int_eq(compress2((Bytef *)out, &made, (Bytef *)text, length, 6), Z_OK);
            ck_assert_uint_le(made, length - length * percent / 100 + length / 16 + 24);
        }
}
END_TEST

Suite *encoder_suite(void) {
    const TTest *const for_each_coding[] = {
        any_steps_give_the_original, an_empty_body_is_a_stream, memory_is_bounded,
        a_flush_lets_everything_out, a_spare_state_is_as_new,   spare_encoders_are_few};
    const TTest *const tests[] = {codings_by_name, gains, gains_by_repetition, gains_are_kept};
    Suite *suite = suite_of("encoder", tests, COUNT_OF(tests));
    TCase *cases = tcase_create("each coding");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, make_spare, free_spare);
    for (size_t i = 0; i < COUNT_OF(for_each_coding); i++)
        tcase_add_loop_test(cases, for_each_coding[i], 0, CODING_COUNT);
    suite_add_tcase(suite, cases);
    return suite;
}
