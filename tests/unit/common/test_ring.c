/* A ring: bytes in their order, and what a side that lies about its index can cause. */
#include "base/ring.h"

#include "suites.h"

#include <stdlib.h>
#include <string.h>

static struct ring_shared *open_both(struct ring *out, struct ring *in, size_t size) {
    struct ring_shared *shared = aligned_alloc(RING_LINE, sizeof *shared);
    char *bytes = malloc(ring_memory(size));
    memset(shared, 0, sizeof *shared);
    ring_open(out, shared, bytes, size);
    ring_open(in, shared, bytes, size);
    return shared;
}

static void close_both(struct ring *out) {
    free(out->bytes);
    free(out->shared);
}

/* Many times around, in pieces of many lengths. */
START_TEST(bytes_keep_their_order) {
    static const size_t sizes[] = {977, 4096, 5000, 128 * 1024};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct ring out, in;
        unsigned char piece[977];
        unsigned next = 0, expected = 0;
        open_both(&out, &in, sizes[i]);
        for (unsigned turn = 0; turn < 40; turn++) {
            size_t length = 1 + (turn * 7919u) % sizeof piece;
            while (ring_room(&out) >= length) {
                for (size_t k = 0; k < length; k++)
                    piece[k] = (unsigned char)next++;
                ring_write(&out, piece, length);
            }
            ring_publish(&out);
            ck_assert_uint_le(ring_waiting(&in), sizes[i]);
            while (ring_waiting(&in) >= 311) {
                ring_read(&in, piece, 311);
                for (size_t k = 0; k < 311; k++)
                    EXPECT(piece[k] == (unsigned char)expected++, "byte %u", expected);
            }
            ring_release(&in);
        }
        ck_assert(!out.broken && !in.broken);
        ck_assert_uint_gt(expected, 5000);
        close_both(&out);
    }
}
END_TEST

START_TEST(a_ring_holds_what_its_size_says) {
    struct ring out, in;
    static const char bytes[1500];
    open_both(&out, &in, 1500);
    ck_assert_uint_eq(ring_memory(1500), 2048);
    ck_assert_uint_eq(ring_memory(2048), 2048);
    ring_write(&out, bytes, 1500);
    ck_assert_uint_eq(ring_room(&out), 0);
    ck_assert_uint_eq(ring_waiting(&in), 0);
    ring_publish(&out);
    ck_assert_uint_eq(ring_waiting(&in), 1500);
    ring_skip(&in, 1000);
    ck_assert_uint_eq(ring_room(&out), 0);
    ring_release(&in);
    ck_assert_uint_eq(ring_room(&out), 1000);
    close_both(&out);
}
END_TEST

/* All indices of the other side that can't be, and some that can. */
START_TEST(forged_indices_break_the_ring) {
    enum { SIZE = 128 * 1024 };
    static const uint32_t forged[] = {SIZE + 1, 0x7fffffff, 0x80000000, 0xffffffff};
    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        struct ring in, out;
        struct ring_shared *shared = open_both(&out, &in, SIZE);
        atomic_store(&shared->written, forged[i]);
        ck_assert_uint_eq(ring_waiting(&in), 0);
        ck_assert(in.broken);
        atomic_store(&shared->written, 8); /* too late */
        ck_assert_uint_eq(ring_waiting(&in), 0);
        atomic_store(&shared->taken, 1); /* more than was written */
        ck_assert_uint_eq(ring_room(&out), 0);
        ck_assert(out.broken);
        ring_open(&out, shared, out.bytes, SIZE);
        atomic_store(&shared->taken, 0 - forged[i]);
        ck_assert(ring_room(&out) == 0 && out.broken);
        ring_open(&in, shared, out.bytes, SIZE);
        atomic_store(&shared->written, SIZE);
        ck_assert(ring_waiting(&in) == SIZE && !in.broken);
        close_both(&out);
    }
}
END_TEST

Suite *ring_suite(void) {
    const TTest *const tests[] = {
        bytes_keep_their_order,
        a_ring_holds_what_its_size_says,
        forged_indices_break_the_ring,
    };
    return suite_of("ring", tests, COUNT_OF(tests));
}
