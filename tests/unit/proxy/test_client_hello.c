/* The first messages of TLS clients: real ones, split in every way, and wrong ones. Each stands in
 * front of a forbidden page. */
#include "suites.h"

#include "tls/client_hello.h"

#include <stdio.h>
#include <string.h>

enum { BYTES_MAX = 120000 };

struct bytes {
    char at[BYTES_MAX];
    size_t length;
};

static void put(struct bytes *bytes, const void *from, size_t length) {
    ck_assert_uint_le(bytes->length + length, BYTES_MAX);
    memcpy(bytes->at + bytes->length, from, length);
    bytes->length += length;
}

static void put_number(struct bytes *bytes, unsigned width, size_t number) {
    while (width > 0) {
        char byte = (char)(number >> 8 * --width);
        put(bytes, &byte, 1);
    }
}

/* A vector: its length in `width` bytes, and its bytes. */
static void put_vector(struct bytes *bytes, unsigned width, const void *from, size_t length) {
    put_number(bytes, width, length);
    put(bytes, from, length);
}

static void put_extension(struct bytes *bytes, unsigned type, const void *from, size_t length) {
    put_number(bytes, 2, type);
    put_vector(bytes, 2, from, length);
}

static void put_server_name(struct bytes *bytes, const char *name, size_t length) {
    static struct bytes entry, list;
    entry.length = list.length = 0;
    put_number(&entry, 1, 0);
    put_vector(&entry, 2, name, length);
    put_vector(&list, 2, entry.at, entry.length);
    put_extension(bytes, 0, list.at, list.length);
}

/* The records of a message, `size` bytes of it in each. */
static void put_records(struct bytes *bytes, const struct bytes *message, size_t size) {
    for (size_t at = 0; at < message->length; at += size) {
        size_t length = message->length - at < size ? message->length - at : size;
        put_number(bytes, 1, 22);
        put_number(bytes, 2, 0x0301);
        put_vector(bytes, 2, message->at + at, length);
    }
}

static const struct bytes *message_with(const char *suites, size_t suites_length,
                                        const struct bytes *extensions) {
    static struct bytes body, message;
    char random[32] = "12345678901234567890123456789012";
    body.length = message.length = 0;
    put_number(&body, 2, 0x0303);
    put(&body, random, sizeof random);
    put_vector(&body, 1, "session", 7);
    put_vector(&body, 2, suites, suites_length);
    put_vector(&body, 1, "\0", 1);
    if (extensions != NULL)
        put_vector(&body, 2, extensions->at, extensions->length);
    put_number(&message, 1, 1);
    put_vector(&message, 3, body.at, body.length);
    return &message;
}

static ssize_t parse_guarded(struct client_hello *hello, const struct bytes *bytes, size_t length) {
    struct slice input = guard_put(slice_make(bytes->at, length));
    return client_hello_parse(hello, input.base, input.length);
}

/* The hello of these extensions, in one record. */
static ssize_t parse_extensions(struct client_hello *hello, const struct bytes *extensions) {
    static struct bytes records;
    records.length = 0;
    put_records(&records, message_with("\xc0\x2b\x13\x01", 4, extensions), 16384);
    return parse_guarded(hello, &records, records.length);
}

static void read_hello(struct bytes *bytes, const char *name) {
    char path[200];
    snprintf(path, sizeof path, "tests/fuzz/corpus/client_hello/%s", name);
    char *whole = source_path(path);
    FILE *file = fopen(whole, "r");
    ck_assert_msg(file != NULL, "%s", whole);
    bytes->length = fread(bytes->at, 1, BYTES_MAX, file);
    fclose(file);
    free(whole);
}

static const struct real {
    const char *file, *name, *alpn;
    uint16_t version;
    bool tls12, tls13, ecdsa, encrypted, post_quantum;
} real[] = {
    {"chromium", "www.example.com", "h2", 0x0304, true, true, true, true, true},
    {"curl", "www.example.com", "http/1.1", 0x0304, true, true, true, false, false},
    {"curl_ip", "", "h2", 0x0304, true, true, true, false, false},
    {"gnutls", "www.example.com", NULL, 0x0304, true, true, true, false, false},
    {"openssl", "www.example.com", NULL, 0x0304, true, true, true, false, false},
    {"openssl12", "www.example.com", "http/1.1", 0x0303, true, false, true, false, false},
    {"openssl_noname", "", NULL, 0x0304, true, true, true, false, false},
    {"openssl_rsa", "old.example.com", NULL, 0x0303, true, false, false, false, false},
    {"python", "www.example.com", "http/1.1", 0x0304, true, true, true, false, false},
};

static void check_real(const struct real *expected, const struct client_hello *hello) {
    ck_assert_int_eq(hello->name_state,
                     expected->name[0] == '\0' ? CLIENT_HELLO_NAME_NONE : CLIENT_HELLO_NAME_VALID);
    ck_assert(slice_equal(client_hello_name(hello), slice_from(expected->name)));
    ck_assert_int_eq(hello->alpn_length > 0, expected->alpn != NULL);
    if (expected->alpn != NULL)
        ck_assert(client_hello_offers_protocol(hello, slice_from(expected->alpn)));
    ck_assert(!client_hello_offers_protocol(hello, SLICE("http")));
    ck_assert_uint_eq(hello->version, expected->version);
    ck_assert_int_eq(hello->offers_tls12, expected->tls12);
    ck_assert_int_eq(hello->offers_tls13, expected->tls13);
    ck_assert_int_eq(hello->verifies_ecdsa_p256, expected->ecdsa);
    ck_assert_int_eq(hello->encrypted_hello, expected->encrypted);
    ck_assert_int_eq(hello->is_post_quantum, expected->post_quantum);
}

START_TEST(real_hellos_are_read) {
    static struct bytes bytes;
    for (size_t i = 0; i < COUNT_OF(real); i++) {
        struct client_hello hello;
        read_hello(&bytes, real[i].file);
        ck_assert_int_eq(parse_guarded(&hello, &bytes, bytes.length), (ssize_t)bytes.length);
        check_real(&real[i], &hello);
        put(&bytes, "early data", 10);
        ck_assert_int_eq(parse_guarded(&hello, &bytes, bytes.length), (ssize_t)bytes.length - 10);
        check_real(&real[i], &hello);
    }
}
END_TEST

START_TEST(every_split_gives_the_same) {
    static struct bytes bytes, message, records;
    static const size_t sizes[] = {1, 2, 3, 4, 5, 43, 100, 700};
    for (size_t i = 0; i < COUNT_OF(real); i++) {
        struct client_hello hello;
        read_hello(&bytes, real[i].file);
        for (size_t length = 0; length < bytes.length; length++)
            ck_assert_int_eq(parse_guarded(&hello, &bytes, length), 0);
        message.length = 0;
        put(&message, bytes.at + 5, bytes.length - 5);
        for (size_t j = 0; j < COUNT_OF(sizes); j++) {
            records.length = 0;
            put_records(&records, &message, sizes[j]);
            ssize_t all = (ssize_t)records.length;
            ck_assert_int_eq(parse_guarded(&hello, &records, records.length), all);
            check_real(&real[i], &hello);
            for (size_t length = 0; length < records.length; length++)
                ck_assert_int_eq(parse_guarded(&hello, &records, length), 0);
        }
    }
}
END_TEST

START_TEST(large_hellos_have_a_limit) {
    static struct bytes extensions, records;
    static char padding[65000];
    struct client_hello hello;
    extensions.length = records.length = 0;
    put_server_name(&extensions, "a.test", 6);
    put_extension(&extensions, 21, padding, 40000);
    put_records(&records, message_with("\x13\x01", 2, &extensions), 16384);
    ck_assert_int_eq(parse_guarded(&hello, &records, records.length), (ssize_t)records.length);
    ck_assert(slice_equal(client_hello_name(&hello), SLICE("a.test")));
    records.length = 0;
    put_records(&records, message_with("\x13\x01", 2, &extensions), 4);
    ck_assert_int_lt(parse_guarded(&hello, &records, records.length), 0);
    ck_assert_int_eq(parse_guarded(&hello, &records, 40000), 0);
    extensions.length = records.length = 0;
    put_extension(&extensions, 21, padding, sizeof padding);
    put_records(&records, message_with("\x13\x01", 2, &extensions), 16384);
    records.at[6] = 1; /* 64 KB more */
    ck_assert_int_lt(parse_guarded(&hello, &records, 9), 0);
}
END_TEST

/* What a hello with these bytes at its front says once `at` bytes are there. */
START_TEST(bad_records_are_noticed_early) {
    static const struct {
        const char *bytes;
        size_t length, bad_at;
    } bad[] = {
        {"GET / HTTP/1.1\r\n", 16, 1},
        {"\x15\x03\x01", 3, 1},
        {"\x16\x02\x00", 3, 2},
        {"\x16\xfe\xff", 3, 2},
        {"\x80\x2e\x01\x03\x01", 5, 1}, /* the form of SSLv2 */
        {"\x16\x03\x01\x00\x00", 5, 5},
        {"\x16\x03\x01\x40\x01", 5, 5},
        {"\x16\x03\x01\x00\x05\x02", 6, 6}, /* a ServerHello */
        {"\x16\x03\x01\x00\x02\x01\x00\x17", 8, 8},
        {"\x16\x03\x01\x00\x02\x01\x00\x16\x03\x01\x00\x00", 12, 12},
        {"\x16\x03\x01\x00\x05\x01\x01\x00\x00\x00", 10, 9},
        {"\x16\x03\x01\x00\x06\x01\x00\x00\x01\x00\x00", 11, 9}, /* more than the message */
        {"\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x05\x00\x00\x01\x00\x00", 16, 14},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (size_t length = 0; length <= bad[i].length; length++) {
            struct client_hello hello;
            struct slice input = guard_put(slice_make(bad[i].bytes, length));
            ssize_t used = client_hello_parse(&hello, input.base, length);
            ck_assert_msg((length < bad[i].bad_at) == (used == 0) && used <= 0,
                          "case %zu is %zd at %zu", i, used, length);
        }
}
END_TEST

START_TEST(bad_lengths_are_refused) {
    static struct bytes extensions, records;
    struct client_hello hello;
    extensions.length = 0;
    put_server_name(&extensions, "a.test", 6);
    put_extension(&extensions, 16, "\0\x03\x02h2", 5);
    for (size_t i = 0; i < 200; i++) { /* each byte one more or less: no crash, and no other end */
        records.length = 0;
        put_records(&records, message_with("\x13\x01", 2, &extensions), 16384);
        if (i / 2 >= records.length)
            break;
        records.at[i / 2] = (char)(records.at[i / 2] + (i % 2 == 0 ? 1 : -1));
        ssize_t used = parse_guarded(&hello, &records, records.length);
        ck_assert(used <= 0 || used == (ssize_t)records.length);
    }
    records.length = 0;
    put_records(&records, message_with("\x13\x01", 2, NULL), 16384);
    ck_assert_int_gt(parse_guarded(&hello, &records, records.length), 0);
    ck_assert_int_eq(hello.version, 0x0303);
    records.length = 0;
    put_records(&records, message_with("\x13\x01\x13", 3, NULL), 16384);
    ck_assert_int_lt(parse_guarded(&hello, &records, records.length), 0);
    records.length = 0;
    put_records(&records, message_with("", 0, NULL), 16384);
    ck_assert_int_lt(parse_guarded(&hello, &records, records.length), 0);
}
END_TEST

START_TEST(bad_extensions_are_refused) {
    static const struct {
        unsigned type;
        const char *bytes;
        size_t length;
    } bad[] = {
        {0, "", 0},
        {0, "\0\0", 2},
        {0, "\0\x03\0\0\0", 5}, /* an empty name */
        {0, "\0\x04\0\0\x01", 5},
        {0, "\0\x04\x01\0\x01x", 6}, /* of another type */
        {0, "\0\x08\0\0\x01x\0\0\x01y", 10},
        {0, "\0\x04\0\0\x01xy", 7},
        {10, "\0\x01\0", 3},
        {10, "\0\0", 2},
        {13, "\0\x03\x04\x03\x05", 5},
        {16, "\0\0", 2},
        {16, "\0\x01\0", 3},
        {16, "\0\x03\x03h2", 5},
        {16, "\0\x03\x02h2!", 6},
        {43, "\x03\x03\x04\x03", 4},
        {43, "\0", 1},
    };
    static struct bytes extensions;
    struct client_hello hello;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        extensions.length = 0;
        put_extension(&extensions, bad[i].type, bad[i].bytes, bad[i].length);
        ck_assert_msg(parse_extensions(&hello, &extensions) < 0, "case %zu", i);
    }
}
END_TEST

START_TEST(extensions_occur_once) {
    static struct bytes extensions;
    struct client_hello hello;
    static const unsigned types[] = {0, 16, 23, 0x0a0a, 0xffff};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        extensions.length = 0;
        for (int j = 0; j < 2; j++)
            if (types[i] == 0)
                put_server_name(&extensions, "a.test", 6);
            else
                put_extension(&extensions, types[i], "\0\x03\x02h2", 5);
        ck_assert_msg(parse_extensions(&hello, &extensions) < 0, "type %u", types[i]);
    }
    extensions.length = 0; /* two values of GREASE */
    put_extension(&extensions, 0x1a1a, "", 0);
    put_extension(&extensions, 0xfafa, "x", 1);
    put_extension(&extensions, 41, "anything", 8);
    ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
    ck_assert(hello.has_ticket);
    put_extension(&extensions, 35, "", 0); /* behind pre_shared_key */
    ck_assert_int_lt(parse_extensions(&hello, &extensions), 0);
}
END_TEST

START_TEST(offers_are_read) {
    static struct bytes extensions;
    struct client_hello hello;
    extensions.length = 0;
    put_extension(&extensions, 43, "\x08\x7a\x7a\x03\x05\x03\x04\x03\x01", 9);
    put_extension(&extensions, 13, "\0\x04\x08\x04\x04\x03", 6);
    put_extension(&extensions, 10, "\0\x06\x3a\x3a\x11\xec\0\x1d", 8);
    put_extension(&extensions, 35, "", 0);
    put_extension(&extensions, 0xfe0d, "x", 1);
    put_extension(&extensions, 42, "", 0);
    ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
    ck_assert_uint_eq(hello.version, 0x0305);
    ck_assert(hello.offers_tls13 && !hello.offers_tls12 && hello.encrypted_hello);
    ck_assert(hello.is_post_quantum && hello.has_early_data && !hello.has_ticket);
    ck_assert(hello.verifies_ecdsa_p256);
    extensions.length = 0; /* TLS 1.2 with ECDSA on P-256, but without that group */
    put_extension(&extensions, 13, "\0\x02\x05\x03", 4);
    put_extension(&extensions, 35, "ticket", 6);
    ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
    ck_assert(hello.verifies_ecdsa_p256 && hello.has_ticket && hello.offers_tls12);
    put_extension(&extensions, 10, "\0\x02\0\x1d", 4);
    ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
    ck_assert(!hello.verifies_ecdsa_p256);
}
END_TEST

START_TEST(long_lists_of_protocols_are_cut) {
    static struct bytes list, extension, extensions;
    struct client_hello hello;
    list.length = extension.length = extensions.length = 0;
    for (int i = 0; i < 100; i++)
        put_vector(&list, 1, i < 85 ? "h2" : "h3", 2);
    put_vector(&extension, 2, list.at, list.length);
    put_extension(&extensions, 16, extension.at, extension.length);
    ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
    ck_assert_uint_eq(hello.alpn_length, 255);
    ck_assert(client_hello_offers_protocol(&hello, SLICE("h2")));
    ck_assert(!client_hello_offers_protocol(&hello, SLICE("h3")));
}
END_TEST

static char long_name[400];

/* Labels of that many bytes, until the name has `length`. */
static const char *name_of(size_t label, size_t length) {
    for (size_t i = 0; i < length; i++)
        long_name[i] = i % (label + 1) == label ? '.' : 'a';
    long_name[length] = '\0';
    return long_name;
}

START_TEST(names_are_judged) {
    static const char *const good[] = {
        "a",         "A.Test",    "a.test.", "_dmarc.a.test", "xn--bcher-kva.example",
        "a--b.test", "1.2.3.com", "0x1.a",   "-a.test",       "a-.test",
        "1and1",
    };
    static const char *const bad[] = {
        "",
        ".",
        "a..test",
        ".a.test",
        "a.test..",
        "a.test,DNS:victim.test",
        "*",
        "*.a.test",
        "a test",
        "a.test\n",
        "a/b",
        "127.0.0.1",
        "127.1",
        "a.1",
        "a.0x7f",
        "a.0x",
        "1",
        "2130706433",
        "[::1]",
        "::1",
        "a:80",
        "a@b",
        "b\303\274cher.test",
        "a.test\x7f",
        "a\\.test",
        "a%2etest",
        "a.127.",
        "a=b",
        "CN=a",
    };
    char out[SERVER_NAME_MAX];
    for (size_t i = 0; i < COUNT_OF(good); i++)
        ck_assert_msg(server_name_is_valid(guard_put(slice_from(good[i]))), "%s", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(server_name_put(out, guard_put(slice_from(bad[i]))) == 0, "%s", bad[i]);
    ck_assert(!server_name_is_valid(slice_make("a\0b", 3)));
    ck_assert(!server_name_is_valid(slice_make("a.test\0", 7)));
    ck_assert(server_name_is_valid(slice_from(name_of(63, 253))));
    ck_assert(!server_name_is_valid(slice_from(name_of(63, 254))));
    ck_assert(!server_name_is_valid(slice_from(name_of(64, 100))));
    ck_assert_uint_eq(server_name_put(out, SLICE("A.TeSt.")), 6);
    ck_assert_mem_eq(out, "a.test", 6);
}
END_TEST

START_TEST(bad_names_are_not_used) {
    static struct bytes extensions;
    static const struct {
        const char *name;
        size_t length;
    } bad[] = {{"a.test,DNS:victim.test", 22}, {"*", 1}, {"a.test\0.b", 9}, {"10.0.0.1", 8}};
    struct client_hello hello;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        extensions.length = 0;
        put_server_name(&extensions, bad[i].name, bad[i].length);
        ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
        ck_assert_int_eq(hello.name_state, CLIENT_HELLO_NAME_INVALID);
        ck_assert_uint_eq(client_hello_name(&hello).length, 0);
    }
    for (size_t length = 250; length < 300; length++) {
        extensions.length = 0;
        put_server_name(&extensions, name_of(50, length), length);
        ck_assert_int_gt(parse_extensions(&hello, &extensions), 0);
        size_t used = length - (long_name[length - 1] == '.');
        ck_assert_int_eq(hello.name_state == CLIENT_HELLO_NAME_VALID, used <= 253);
    }
}
END_TEST

Suite *client_hello_suite(void) {
    const TTest *const tests[] = {
        real_hellos_are_read,
        every_split_gives_the_same,
        large_hellos_have_a_limit,
        bad_records_are_noticed_early,
        bad_lengths_are_refused,
        bad_extensions_are_refused,
        extensions_occur_once,
        offers_are_read,
        long_lists_of_protocols_are_cut,
        names_are_judged,
        bad_names_are_not_used,
    };
    return suite_of("client_hello", tests, COUNT_OF(tests));
}
