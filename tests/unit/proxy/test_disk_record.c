/* What stands on a volume: records, headers, seals; and what does not count as one. */
#include "suites.h"

#include "disk/purge_slot.h"
#include "disk/record.h"

enum { IDENTITY = 77, SEQUENCE = 5 };

static const uint64_t sums[3] = {1, 2, 3};

struct written {
    size_t length;
    char *bytes;
};

static struct record_front front_of(uint64_t body_length) {
    return (struct record_front){
        .identity = IDENTITY,
        .sequence = SEQUENCE,
        .serial = 9,
        .events = 4,
        .key = {.high = 11, .low = 12},
        .body_length = body_length,
        .kind = RECORD_OBJECT,
        .variant = 3,
        .url_length = 8,
        .head_length = 5,
        .vary_length = 2,
        .image = {.lifetime = 60, .status = 200},
    };
}

static struct written write_one(uint64_t body_length) {
    struct record_front front = front_of(body_length);
    struct written written = {.length = record_front_length(&front)};
    written.bytes = aligned_alloc(64, (written.length + 63) / 64 * 64);
    record_write(&front, SLICE("http://a"), SLICE("head!"), SLICE("va"), sums, written.bytes);
    return written;
}

static enum record_verdict read_one(struct record *record, const struct written *written,
                                    size_t length) {
    return record_read(record, slice_make(written->bytes, length), IDENTITY, SEQUENCE);
}

START_TEST(what_is_written_is_read) {
    struct record record;
    struct written written = write_one(2 * RECORD_CHUNK + 1);
    ck_assert_int_eq(read_one(&record, &written, written.length), RECORD_GOOD);
    ck_assert_uint_eq(record.front_length, written.length);
    ck_assert(slice_equal(record.url, SLICE("http://a")));
    ck_assert(slice_equal(record.head, SLICE("head!")));
    ck_assert(slice_equal(record.vary, SLICE("va")));
    ck_assert_mem_eq(record.sums, sums, sizeof sums);
    ck_assert_uint_eq(record.front.serial, 9);
    ck_assert_uint_eq(record.front.key.low, 12);
    ck_assert_int_eq(record.front.image.lifetime, 60);
    free(written.bytes);
}
END_TEST

START_TEST(a_part_says_how_much_is_needed) {
    struct record record;
    struct written written = write_one(RECORD_CHUNK);
    for (size_t length = 0; length < written.length; length++) {
        ck_assert_int_eq(read_one(&record, &written, length), RECORD_SHORT);
        ck_assert_uint_gt(record.front_length, length);
        ck_assert_uint_le(record.front_length, written.length);
    }
    free(written.bytes);
}
END_TEST

START_TEST(every_bit_counts) {
    struct record record;
    struct written written = write_one(RECORD_CHUNK);
    for (size_t bit = 0; bit < written.length * 8; bit++) {
        written.bytes[bit / 8] ^= (char)(1 << bit % 8);
        ck_assert_int_ne(read_one(&record, &written, written.length), RECORD_GOOD);
        written.bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    ck_assert_int_eq(read_one(&record, &written, written.length), RECORD_GOOD);
    free(written.bytes);
}
END_TEST

START_TEST(others_are_not_taken_for_this_one) {
    struct record record;
    struct written written = write_one(0);
    struct slice bytes = slice_make(written.bytes, written.length);
    ck_assert_int_eq(record_read(&record, bytes, IDENTITY + 1, SEQUENCE), RECORD_BAD);
    ck_assert_int_eq(record_read(&record, bytes, IDENTITY, SEQUENCE + 1), RECORD_BAD);
    memset(written.bytes, 0, written.length);
    ck_assert_int_eq(record_read(&record, bytes, 0, 0), RECORD_BAD);
    free(written.bytes);
}
END_TEST

/* With a sum that fits, as of a writer that was mad. */
START_TEST(lengths_past_all_reason_are_refused) {
    struct record record;
    struct written written = write_one(0);
    static const size_t fields[] = {offsetof(struct record_front, url_length),
                                    offsetof(struct record_front, head_length),
                                    offsetof(struct record_front, vary_length)};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const uint32_t much = RECORD_TEXT_MAX + 1;
        uint32_t before;
        memcpy(&before, written.bytes + fields[i], sizeof before);
        memcpy(written.bytes + fields[i], &much, sizeof much);
        ck_assert_int_eq(read_one(&record, &written, written.length), RECORD_BAD);
        memcpy(written.bytes + fields[i], &before, sizeof before);
    }
    const uint64_t most = UINT64_MAX;
    memcpy(written.bytes + offsetof(struct record_front, body_length), &most, sizeof most);
    ck_assert_int_eq(read_one(&record, &written, written.length), RECORD_BAD);
    free(written.bytes);
}
END_TEST

START_TEST(chunks_and_blocks_are_rounded_up) {
    ck_assert_uint_eq(record_chunks(0), 0);
    ck_assert_uint_eq(record_chunks(1), 1);
    ck_assert_uint_eq(record_chunks(RECORD_CHUNK), 1);
    ck_assert_uint_eq(record_chunks(RECORD_CHUNK + 1), 2);
    ck_assert_uint_eq(record_blocks(RECORD_ALIGN), 1);
    ck_assert_uint_eq(record_blocks(RECORD_ALIGN + 1), 2);
}
END_TEST

/* Of anything with a seal: as it is, and with each of its bits turned. */
#define CHECK_BITS(thing, good)                                                                    \
    do {                                                                                           \
        ck_assert(good);                                                                           \
        for (size_t bit = 0; bit < sizeof(thing) * 8; bit++) {                                     \
            ((char *)&(thing))[bit / 8] ^= (char)(1 << bit % 8);                                   \
            ck_assert(!(good));                                                                    \
            ((char *)&(thing))[bit / 8] ^= (char)(1 << bit % 8);                                   \
        }                                                                                          \
    } while (0)

START_TEST(headers_are_sealed) {
    struct volume_header volume = {.size = 1 << 24, .segment_size = 1 << 20, .segment_count = 15};
    struct segment_header segment = {.identity = IDENTITY, .sequence = SEQUENCE, .run = 1};
    struct segment_seal seal = {.identity = IDENTITY, .sequence = SEQUENCE, .contents_at = 1024};
    struct purge_sector purges = {.identity = IDENTITY, .at = 2};
    volume_header_seal(&volume);
    CHECK_BITS(volume, volume_header_good(&volume));
    segment_header_seal(&segment);
    CHECK_BITS(segment, segment_header_good(&segment, IDENTITY));
    ck_assert(!segment_header_good(&segment, IDENTITY + 1));
    segment_seal_seal(&seal);
    CHECK_BITS(seal, segment_seal_good(&seal, &segment, 1 << 20));
    purge_sector_seal(&purges);
    CHECK_BITS(purges, purge_sector_good(&purges, IDENTITY, 2));
    ck_assert(!purge_sector_good(&purges, IDENTITY + 1, 2));
    ck_assert(!purge_sector_good(&purges, IDENTITY, 3));
}
END_TEST

START_TEST(a_seal_stays_in_its_segment) {
    struct segment_header segment = {.identity = IDENTITY, .sequence = SEQUENCE, .run = 1};
    struct segment_seal seal = {.identity = IDENTITY, .sequence = SEQUENCE};
    seal.contents_at = (1 << 20) - 10 * sizeof(struct record_entry);
    seal.count = 10;
    segment_seal_seal(&seal);
    ck_assert(segment_seal_good(&seal, &segment, 1 << 20));
    seal.count = 11;
    segment_seal_seal(&seal);
    ck_assert(!segment_seal_good(&seal, &segment, 1 << 20));
    seal.contents_at = UINT64_MAX;
    segment_seal_seal(&seal);
    ck_assert(!segment_seal_good(&seal, &segment, 1 << 20));
    seal.contents_at = 1024;
    seal.sequence++;
    segment_seal_seal(&seal);
    ck_assert(!segment_seal_good(&seal, &segment, 1 << 20));
}
END_TEST

Suite *disk_record_suite(void) {
    const TTest *tests[] = {
        what_is_written_is_read,
        a_part_says_how_much_is_needed,
        every_bit_counts,
        others_are_not_taken_for_this_one,
        lengths_past_all_reason_are_refused,
        chunks_and_blocks_are_rounded_up,
        headers_are_sealed,
        a_seal_stays_in_its_segment,
    };
    return suite_of("disk_record", tests, COUNT_OF(tests));
}
