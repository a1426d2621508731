/* Downloads that wait for who asked for them: tokens, limits, and the end of their time. */
#include "suites.h"

#include "patience/waiting_download.h"

#include <string.h>

static struct address client, other;
static struct waiting_downloads *downloads;

static void open_table(void) {
    ck_assert(address_parse(&client, SLICE("192.0.2.1:1000"), 0));
    ck_assert(address_parse(&other, SLICE("192.0.2.2:1000"), 0));
    downloads = waiting_downloads_new();
}

static struct waiting_download *open_one(size_t most) {
    return waiting_downloads_open(downloads, &client, 1000, -1, most, scratch());
}

static struct waiting_download *find(const char *token, const struct address *from, uint64_t now) {
    return waiting_downloads_find(downloads, slice_from(token), from, now);
}

static void make_ready(struct waiting_download *download, uint64_t expires) {
    struct http_head head;
    head_from(&head, "Content-Type: a/b\n");
    head.status = 200;
    head.reason = SLICE("OK");
    waiting_download_ready(download, &head, expires);
}

START_TEST(tokens_are_for_who_they_were_made_for) {
    open_table();
    struct waiting_download *download = open_one(1 << 20), *found;
    struct address port = client;
    ck_assert(address_parse(&port, SLICE("192.0.2.1:2000"), 0)); /* a further connection of it */
    ck_assert_uint_eq(strlen(download->token), WAITING_DOWNLOAD_TOKEN);
    found = find(download->token, &port, 1000);
    ck_assert_ptr_eq(found, download);
    waiting_download_release(&found);
    ck_assert_ptr_null(find(download->token, &other, 1000));
    ck_assert_ptr_null(find("00000000000000000000000000000000", &client, 1000));
    ck_assert_ptr_null(find("", &client, 1000));
    ck_assert_ptr_null(waiting_downloads_find(
        downloads, slice_make(download->token, WAITING_DOWNLOAD_TOKEN - 1), &client, 1000));
    struct waiting_download *second = open_one(1 << 20);
    ck_assert_str_ne(download->token, second->token);
    waiting_download_failed(download, "no", 2000);
    waiting_download_failed(second, "no", 2000);
    waiting_download_release(&download);
    waiting_download_release(&second);
    waiting_downloads_free(&downloads);
}
END_TEST

START_TEST(they_leave_when_their_time_is_over) {
    char token[WAITING_DOWNLOAD_TOKEN + 1];
    open_table();
    struct waiting_download *download = open_one(1 << 20), *found;
    memcpy(token, download->token, sizeof token);
    ck_assert_uint_eq(waiting_downloads_expire(downloads, 1000000), TIMER_NEVER); /* it is coming */
    ck_assert_int_eq(waiting_download_state(download), WAITING_DOWNLOAD_COMING);
    make_ready(download, 5000);
    ck_assert_int_eq(waiting_download_state(download), WAITING_DOWNLOAD_READY);
    waiting_download_release(&download);
    ck_assert_uint_eq(waiting_downloads_expire(downloads, 4999), 5000);
    found = find(token, &client, 4999);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(waiting_downloads_expire(downloads, 5000), TIMER_NEVER);
    ck_assert_ptr_null(find(token, &client, 5000));
    ck_assert_int_eq(waiting_download_state(found),
                     WAITING_DOWNLOAD_READY); /* who has it, reads on */
    waiting_download_release(&found);
    waiting_downloads_free(&downloads);
}
END_TEST

static size_t read_whole(struct source *source, char *bytes, size_t capacity) {
    size_t sum = 0, got;
    enum source_status status;
    while ((status = source_read(source, bytes + sum, capacity - sum, &got)) == SOURCE_DATA)
        sum += got;
    ck_assert_int_eq(status, SOURCE_END);
    return sum;
}

/* In memory or in a file. */
START_TEST(bodies_come_out_as_they_went_in) {
    static char bytes[300000], out[400000];
    struct loop loop;
    struct arena arena;
    ck_assert(loop_init(&loop));
    arena_init(&arena);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    open_table();
    for (size_t length = 0; length <= sizeof bytes; length = length * 3 + 1) {
        struct waiting_download *download = open_one(1 << 20);
        for (size_t at = 0; at < length; at += 1000)
            ck_assert(waiting_download_append(download, bytes + at,
                                              length - at < 1000 ? length - at : 1000));
        make_ready(download, 5000);
        struct source *source = waiting_download_body(&download, &arena, &loop);
        ck_assert_ptr_null(download);
        ck_assert_int_eq(source->length, (int64_t)length);
        ck_assert_uint_eq(read_whole(source, out, sizeof out), length);
        ck_assert_int_eq(memcmp(out, bytes, length), 0);
        source_close(&source);
    }
    waiting_downloads_expire(downloads, 5000);
    waiting_downloads_free(&downloads);
    arena_release(&arena);
    loop_release(&loop);
}
END_TEST

START_TEST(all_bodies_together_have_a_limit) {
    static const char bytes[1000];
    open_table();
    struct waiting_download *first = open_one(5000), *second = open_one(5000), *third;
    for (int i = 0; i < 3; i++)
        ck_assert(waiting_download_append(first, bytes, sizeof bytes));
    for (int i = 0; i < 2; i++)
        ck_assert(waiting_download_append(second, bytes, sizeof bytes));
    ck_assert(!waiting_download_append(second, bytes, 1));
    waiting_download_failed(second, "no", 2000);
    waiting_download_failed(first, "no", 2000);
    waiting_download_release(&first);
    waiting_download_release(&second);
    waiting_downloads_expire(downloads, 2000);
    third = open_one(5000); /* what the others had is free again */
    for (int i = 0; i < 5; i++)
        ck_assert(waiting_download_append(third, bytes, sizeof bytes));
    waiting_download_failed(third, "no", 2000);
    waiting_download_release(&third);
    waiting_downloads_free(&downloads);
}
END_TEST

START_TEST(so_many_have_room) {
    static struct waiting_download *all[WAITING_DOWNLOADS_MAX];
    open_table();
    for (size_t i = 0; i < COUNT_OF(all); i++)
        ck_assert_ptr_nonnull(all[i] = open_one(1 << 20));
    ck_assert_ptr_null(open_one(1 << 20));
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        waiting_download_failed(all[i], "no", 2000);
        waiting_download_release(&all[i]);
    }
    waiting_downloads_expire(downloads, 2000);
    struct waiting_download *one = open_one(1 << 20);
    ck_assert_ptr_nonnull(one);
    waiting_download_failed(one, "no", 2000);
    waiting_download_release(&one);
    waiting_downloads_free(&downloads);
}
END_TEST

Suite *waiting_download_suite(void) {
    const TTest *const tests[] = {
        tokens_are_for_who_they_were_made_for, they_leave_when_their_time_is_over,
        bodies_come_out_as_they_went_in, all_bodies_together_have_a_limit, so_many_have_room};
    return suite_of("waiting_download", tests, COUNT_OF(tests));
}
