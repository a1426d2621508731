/* Recorded ICAP exchanges: as bytes, without secrets, chosen, and within limits. */
#include "suites.h"

#include "http/secret_field.h"
#include "record/file.h"
#include "record/mask.h"
#include "record/recorder.h"

#include <string.h>

static struct recorded_exchange usual = {
    .id = {"17", 2},
    .service = {"gray", 4},
    .point = {"respmod_precache", 16},
    .method = {"GET", 3},
    .url = {"http://a.org/b?c", 16},
    .verdict = {"modified", 8},
    .error = {"two\nlines", 9},
    .time = 1700000000123,
    .status = 200,
    .virgin_length = UINT64_MAX,
    .request_head = {"GET / HTTP/1.1\r\n\r\n", 18},
    .result = {"\0body", 5},
};

static bool same(struct slice a, const char *b) {
    return slice_equal(a, slice_from(b));
}

START_TEST(what_was_written_is_read) {
    struct recorded_exchange exchange;
    struct icap_record_head head;
    const char *error;
    size_t length;
    char *record = recorded_exchange_write(&usual, RECORDED_EXCHANGE, &length);
    ck_assert(icap_record_head_parse(&head, record));
    ck_assert_uint_eq(length, RECORDED_HEAD + head.length);
    struct slice content = guard_keep(slice_make(record + RECORDED_HEAD, head.length));
    ck_assert(icap_record_content_fits(&head, content));
    ck_assert(recorded_exchange_parse(&exchange, content, &error));
    ck_assert(same(exchange.service, "gray") && same(exchange.url, "http://a.org/b?c"));
    ck_assert(same(exchange.error, "two?lines"));
    ck_assert_uint_eq(exchange.virgin_length, UINT64_MAX);
    ck_assert(slice_equal(exchange.result, usual.result) && exchange.virgin.length == 0);
    free(record);
}
END_TEST

START_TEST(each_changed_byte_is_noticed) {
    struct icap_record_head head;
    size_t length;
    char *record = recorded_exchange_write(&usual, RECORDED_EXCHANGE, &length);
    for (size_t i = 0; i < length; i++) {
        record[i] ^= 1;
        bool good = icap_record_head_parse(&head, record);
        if (good)
            good = icap_record_content_fits(
                &head, slice_make(record + RECORDED_HEAD, length - RECORDED_HEAD));
        ck_assert_msg(!good, "byte %zu", i);
        record[i] ^= 1;
    }
    free(record);
}
END_TEST

START_TEST(parts_end_within_the_content) {
    struct recorded_exchange exchange;
    const char *error;
    size_t length;
    char *record = recorded_exchange_write(&usual, RECORDED_EXCHANGE, &length);
    unsigned good = 0;
    for (size_t cut = 0; cut < length - RECORDED_HEAD; cut++)
        good += recorded_exchange_parse(
            &exchange, guard_keep(slice_make(record + RECORDED_HEAD, cut)), &error);
    ck_assert_uint_eq(good, 3); /* nothing, and behind the first and the second part */
    free(record);
}
END_TEST

START_TEST(secrets_are_replaced) {
    static const char head[] = "GET http://a.org/?Cookie: HTTP/1.1\r\n"
                               "Cookie: a=b\r\n"
                               "X-Vault-Token: a\r\n"
                               "Surrogate-Key: a\r\n"
                               "AUTHORIZATION:Basic xyz\r\n"
                               "Set-Cookie: a\r\n"
                               "set-cookie: b\r\n"
                               "\r\n";
    static const char masked[] = "GET http://a.org/?Cookie: HTTP/1.1\r\n"
                                 "Cookie: masked\r\n"
                                 "X-Vault-Token: masked\r\n"
                                 "Surrogate-Key: a\r\n"
                                 "AUTHORIZATION: masked\r\n"
                                 "Set-Cookie: masked\r\n"
                                 "set-cookie: masked\r\n"
                                 "\r\n";
    size_t length;
    char *seen = record_mask_head(guard_keep(slice_from(head)), &length);
    ck_assert(slice_equal(slice_make(seen, length), slice_from(masked)));
    free(seen);
    seen = record_mask_head(guard_keep(SLICE("Cookie: without an end")), &length);
    ck_assert(slice_equal(slice_make(seen, length), SLICE("Cookie: masked\r\n")));
    free(seen);
}
END_TEST

START_TEST(only_fields_are_masked) {
    static const char *const same[] = {"CONNECT auth.example.com:443 HTTP/1.1\r\n\r\n",
                                       "GET /login?session=1&next=https://a/ HTTP/1.1\r\n\r\n",
                                       "HTTP/1.1 401 Unauthorized: no token\r\n\r\n",
                                       "GET\t/token:1 HTTP/1.1\r\n\r\n",
                                       "Host: a\r\n token: b\r\n\r\n"};
    size_t length;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char *seen = record_mask_head(guard_keep(slice_from(same[i])), &length);
        ck_assert_msg(slice_equal(slice_make(seen, length), slice_from(same[i])), "%s", same[i]);
        free(seen);
    }
    char *seen =
        record_mask_head(guard_keep(SLICE("Cookie: a\r\n b: c\r\n\td\r\nHost: a\r\n")), &length);
    ck_assert(slice_equal(slice_make(seen, length),
                          SLICE("Cookie: masked\r\n masked\r\n masked\r\nHost: a\r\n")));
    free(seen);
}
END_TEST

START_TEST(fields_that_are_secret) {
    static const char *const secret[] = {"Authorization",
                                         "Proxy-Authorization",
                                         "Cookie",
                                         "Cookie2",
                                         "Set-Cookie",
                                         "Set-Cookie2",
                                         "WWW-Authenticate",
                                         "Proxy-Authenticate",
                                         "Authentication-Info",
                                         "X-Authenticated-User",
                                         "X-Authenticated-Groups",
                                         "X-Api-Key",
                                         "X-Auth-Token",
                                         "X-Csrf-Token",
                                         "X-Xsrf-Token",
                                         "Private-Token",
                                         "X-Vault-Token",
                                         "X-Amz-Security-Token",
                                         "Api-Key",
                                         "apikey",
                                         "X-Session-Token",
                                         "X-SESSION-ID",
                                         "Cf-Access-Jwt-Assertion",
                                         "DPoP",
                                         "X-Password",
                                         "X-Origin-Secret",
                                         "X-Authorisation",
                                         "X-Author-Auth",
                                         "X-Auth-User",
                                         "OAuth",
                                         "X-RateLimit-Token",
                                         "X-Client-Username",
                                         "X-Remote-User",
                                         "X-Otp",
                                         "otp",
                                         "X_TOTP_Code",
                                         "X-Pin",
                                         "X-Sid",
                                         "PHPSESSID",
                                         "Signature"};
    static const char *const open[] = {"Host",
                                       "Date",
                                       "Accept",
                                       "ETag",
                                       "Via",
                                       "Age",
                                       "Surrogate-Key",
                                       "surrogate-key",
                                       "Cache-Tag",
                                       "Sec-WebSocket-Key",
                                       "Sec-WebSocket-Accept",
                                       "Signature-Input",
                                       "Keep-Alive",
                                       "X-Client-IP",
                                       "Content-Type",
                                       "Server-Timing",
                                       "User-Agent",
                                       "Access-Control-Allow-Credentials",
                                       "X-Cache-Key",
                                       "Idempotency-Key",
                                       "Accept-Signature",
                                       "X-RateLimit-Remaining-Tokens",
                                       "X-Rate-Limit-Tokens",
                                       "Author",
                                       "X-Author",
                                       "Authority",
                                       "X-Pinned",
                                       "X-Side",
                                       ""};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        ck_assert_msg(secret_field(guard_keep(slice_from(secret[i]))), "%s", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        ck_assert_msg(!secret_field(guard_keep(slice_from(open[i]))), "%s", open[i]);
}
END_TEST

static bool fits(const char *name, const char *value) {
    struct record_filter filter = {0};
    char error[RECORD_FILTER_ERROR];
    ck_assert(record_filter_set(&filter, name, value, error));
    bool good = record_filter_fits(&filter, &usual) && record_filter_fits_verdict(&filter, &usual);
    record_filter_release(&filter);
    return good;
}

START_TEST(filters_fit) {
    static const char *const good[][2] = {
        {"service", "gray"}, {"point", "respmod_precache"}, {"host", "A.org"},
        {"regex", "b\\?c$"}, {"prefix", "http://a.org/b"},  {"verdict", "modified"},
        {"status", "200"},
    };
    static const char *const bad[][2] = {
        {"service", "gra"}, {"point", "reqmod_precache"}, {"host", "a.or"},
        {"regex", "^b"},    {"prefix", "http://a.org/c"}, {"verdict", "failed"},
        {"status", "201"},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        ck_assert_msg(fits(good[i][0], good[i][1]), "%s", good[i][0]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(!fits(bad[i][0], bad[i][1]), "%s", bad[i][0]);
}
END_TEST

static struct recorder *recorder_of(struct recorder_limits limits) {
    struct record_filter filter = {0};
    return recorder_new(&filter, &limits, true);
}

static enum icap_keeping record_one(struct recorder *recorder) {
    return recorder_begin(recorder, &usual) ? recorder_keep(recorder, &usual) : ICAP_NOT_WANTED;
}

/* What a recorder gives up last, with the bytes of what came before it. */
static struct recorded_exchange take_end(struct recorder *recorder, size_t *before) {
    struct recorded_exchange last = {0};
    struct icap_record_head head;
    const char *error;
    size_t length;
    char *bytes = recorder_take(recorder, &length), *at = bytes;
    ck_assert_ptr_nonnull(bytes);
    while (icap_record_head_parse(&head, at) && head.kind != RECORDED_END)
        at += RECORDED_HEAD + head.length;
    struct slice content = slice_make(at + RECORDED_HEAD, head.length);
    ck_assert(recorded_exchange_parse(&last, content, &error));
    last.ended = slice_make(NULL, 0);
    *before = (size_t)(at - bytes);
    free(bytes);
    return last;
}

START_TEST(recorders_keep_to_their_memory) {
    struct recorder *recorder = recorder_of((struct recorder_limits){100, 1000, 100, 60});
    unsigned kept = 0, dropped = 0;
    size_t length;
    for (unsigned i = 0; i < 20; i++) {
        enum icap_keeping keeping = record_one(recorder);
        kept += keeping == ICAP_KEPT;
        dropped += keeping == ICAP_DROPPED;
    }
    ck_assert(kept > 0 && dropped > 0 && kept + dropped == 20);
    ck_assert(!recorder_reserve(recorder, 1000));
    free(recorder_take(recorder, &length));
    ck_assert_uint_le(length, 1000);
    ck_assert(recorder_reserve(recorder, 1000));
    recorder_unreserve(recorder, 1000);
    ck_assert(recorder_begin(recorder, &usual)); /* stays under way */
    recorder_stop(recorder, "stopped");
    struct recorded_exchange last = take_end(recorder, &length);
    ck_assert_uint_eq(last.kept, kept);
    ck_assert_uint_eq(last.dropped, dropped);
    ck_assert_uint_eq(last.unfinished, 1);
    ck_assert_ptr_null(recorder_take(recorder, &length));
    recorder_release(&recorder);
}
END_TEST

START_TEST(recorders_end_with_enough_exchanges) {
    struct recorder *recorder = recorder_of((struct recorder_limits){100, 1 << 20, 2, 60});
    size_t length;
    ck_assert_int_eq(record_one(recorder), ICAP_KEPT);
    ck_assert(!recorder_is_over(recorder));
    ck_assert_int_eq(record_one(recorder), ICAP_KEPT);
    ck_assert(recorder_is_over(recorder));
    ck_assert_int_eq(record_one(recorder), ICAP_NOT_WANTED);
    struct recorded_exchange last = take_end(recorder, &length);
    ck_assert_uint_eq(last.kept, 2);
    ck_assert(length > 0);
    recorder_release(&recorder);
}
END_TEST

Suite *exchange_suite(void) {
    const TTest *const tests[] = {
        what_was_written_is_read,
        each_changed_byte_is_noticed,
        parts_end_within_the_content,
        secrets_are_replaced,
        only_fields_are_masked,
        fields_that_are_secret,
        filters_fit,
        recorders_keep_to_their_memory,
        recorders_end_with_enough_exchanges,
    };
    return suite_of("exchange", tests, COUNT_OF(tests));
}
