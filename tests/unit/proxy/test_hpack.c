/* HPACK: the examples of RFC 7541, and what is wrong. Each block stands in front of a forbidden
 * page. */
#include "suites.h"

#include "base/assert.h"
#include "http2/hpack.h"
#include "http2/hpack_encode.h"
#include "http2/huffman.h"

#include <stdio.h>

enum { TEXT_ROOM = 1 << 17, FIELDS_ROOM = 256, SIZE_MOST = 65536, SHOWN_ROOM = 1 << 18 };

static struct hpack_decoder decoder;
static struct hpack_list list;
static char list_text[TEXT_ROOM];
static struct hpack_field list_fields[FIELDS_ROOM];

static void start(uint32_t limit) {
    hpack_decoder_init(&decoder, limit);
    hpack_list_init(&list, list_text, sizeof list_text, list_fields, FIELDS_ROOM, SIZE_MOST);
}

static unsigned digit_of(char c) {
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* Bytes from "8286 8441 ...". */
static struct slice from_hex(const char *hex) {
    static char bytes[65536];
    size_t length = 0;
    for (; *hex != '\0'; hex += *hex == ' ' ? 1 : 2)
        if (*hex != ' ')
            bytes[length++] = (char)(digit_of(hex[0]) << 4 | digit_of(hex[1]));
    return slice_make(bytes, length);
}

static enum hpack_result decode_bytes(struct slice bytes) {
    return hpack_decode(&decoder, guard_put(bytes), &list);
}

static enum hpack_result decode_hex(const char *hex) {
    return decode_bytes(from_hex(hex));
}

/* The list, as "name: value\n" lines; one that is never indexed has a '!' in front. */
static const char *shown(void) {
    static char text[SHOWN_ROOM];
    char *at = text;
    for (unsigned i = 0; i < list.count; i++)
        at += sprintf(at, "%s%.*s: %.*s\n", list.fields[i].never_indexed ? "!" : "",
                      SLICE_PRINT(list.fields[i].name), SLICE_PRINT(list.fields[i].value));
    *at = '\0';
    return text;
}

static void check_block(const char *hex, const char *expected, uint32_t table_size) {
    ck_assert_int_eq(decode_hex(hex), HPACK_GOOD);
    ck_assert_str_eq(shown(), expected);
    ck_assert_uint_eq(decoder.size, table_size);
}

/* RFC 7541, C.2 */
START_TEST(literals_of_the_rfc) {
    start(4096);
    check_block("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                "custom-key: custom-header\n", 55);
    hpack_decoder_release(&decoder);
    start(4096);
    check_block("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n", 0);
    check_block("1008 7061 7373 776f 7264 0673 6563 7265 74", "!password: secret\n", 0);
    check_block("82", ":method: GET\n", 0);
    hpack_decoder_release(&decoder);
}
END_TEST

static const char first_request[] =
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n";
static const char second_request[] =
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache\n";
static const char third_request[] =
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n"
    "custom-key: custom-value\n";

/* C.3, C.4 */
START_TEST(requests_of_the_rfc) {
    start(4096);
    check_block("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first_request, 57);
    check_block("8286 84be 5808 6e6f 2d63 6163 6865", second_request, 110);
    check_block("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                third_request, 164);
    hpack_decoder_release(&decoder);
    start(4096);
    check_block("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first_request, 57);
    check_block("8286 84be 5886 a8eb 1064 9cbf", second_request, 110);
    check_block("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third_request, 164);
    hpack_decoder_release(&decoder);
}
END_TEST

static const char first_response[] =
    ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n"
    "location: https://www.example.com\n";
static const char second_response[] =
    ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n"
    "location: https://www.example.com\n";
static const char third_response[] =
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n"
    "location: https://www.example.com\ncontent-encoding: gzip\n"
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";

/* C.5, C.6: with a table of 256 bytes, which evicts. */
START_TEST(responses_of_the_rfc) {
    start(4096);
    check_block("3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230"
                " 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861"
                " 6d70 6c65 2e63 6f6d",
                first_response, 222);
    check_block("4803 3330 37c1 c0bf", second_response, 222);
    check_block("88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d"
                " 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049"
                " 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e"
                " 3d31",
                third_response, 215);
    hpack_decoder_release(&decoder);
    start(4096);
    check_block("3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0"
                " 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                first_response, 222);
    check_block("4883 640e ffc1 c0bf", second_response, 222);
    check_block("88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab"
                " 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f"
                " 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                third_response, 215);
    hpack_decoder_release(&decoder);
}
END_TEST

/* What decoders MUST refuse, each after a request that leaves one entry in the table. */
static const char *const wrong_blocks[] = {
    "80",                                 /* index 0 (§6.1) */
    "bf",                                 /* index 63, one behind the last entry (§2.3.3) */
    "ff80 01",                            /* 255 */
    "ff",                                 /* the number is cut off */
    "ff80",                               /* likewise */
    "ff80 8080 8001",                     /* 127 + 2^28; no such entry */
    "ffff ffff ff0f",                     /* 2^32 + 126: more than 2^31-1 */
    "ffff ffff ffff 01",                  /* more than six bytes */
    "ff80 8080 8080 00",                  /* likewise, though the number is 127 */
    "40",                                 /* a literal without name */
    "4001",                               /* its name is cut off */
    "4001 61",                            /* without value */
    "4001 6102 62",                       /* its value is cut off */
    "007f ffff ffff 07",                  /* a name of 2^31 + 126 bytes */
    "0f80 01",                            /* a name of entry 143 */
    "7f00",                               /* a name of entry 63 */
    "0001 61ff ffff ff0f",                /* a value of 2^32 bytes */
    "3fe2 1f",                            /* a table of 4097 bytes (§6.3) */
    "823f e11f",                          /* a new size behind a field (§4.2) */
    "2020 20",                            /* three new sizes */
    "3f",                                 /* the new size is cut off */
    "0086 f2b2 4a84 ffff 00",             /* padding of eight bits and more (§5.2) */
    "0081 1800",                          /* "a", and padding that is not all ones */
    "0084 ffff ffff 00",                  /* EOS */
    "0085 1fff ffff ff00",                /* "a", EOS */
    "008b 3829 ce4f 06fe ffff ffff 0f00", /* EOS and another code in the last bytes */
    "0083 18c6 3100",                     /* "aaaa" and four of the five bits of another "a" */
    "0082 1fff 00",                       /* "a" and padding of eleven bits */
    "0081 ff00",                          /* padding of eight bits alone */
    "0084 ffff fffc 00",                  /* the code of CR and of EOS alike begin so: not whole */
};

START_TEST(wrong_blocks_are_refused) {
    for (size_t i = 0; i < COUNT_OF(wrong_blocks); i++) {
        start(4096);
        ck_assert_int_eq(decode_hex("4001 6101 62"), HPACK_GOOD);
        ck_assert_msg(decode_hex(wrong_blocks[i]) == HPACK_BAD, "%s", wrong_blocks[i]);
        hpack_decoder_release(&decoder);
    }
}
END_TEST

/* Index 62 with an empty table is no entry. */
START_TEST(an_empty_table_has_no_entries) {
    start(4096);
    ck_assert_int_eq(decode_hex("be"), HPACK_BAD);
    ck_assert_int_eq(decode_hex("7e00"), HPACK_BAD);
    ck_assert_int_eq(decode_hex("4001 6101 62"), HPACK_GOOD);
    ck_assert_int_eq(decode_hex("be"), HPACK_GOOD);
    ck_assert_str_eq(shown(), "a: b\n");
    ck_assert_int_eq(decode_hex("203f e11f be"), HPACK_BAD); /* sizes 0 and 4096: it is empty */
    ck_assert_int_eq(decode_hex(""), HPACK_GOOD);
    ck_assert_uint_eq(list.count, 0);
    hpack_decoder_release(&decoder);
}
END_TEST

/* §4.2: after the acknowledgement of settings with a smaller table, a block has to begin with a
 * size. A larger one may be used at once. */
START_TEST(the_table_follows_our_settings) {
    start(100);
    ck_assert_int_eq(decode_hex("82"), HPACK_GOOD);
    hpack_decoder_acknowledged(&decoder);
    ck_assert_int_eq(decode_hex("82"), HPACK_BAD);
    ck_assert_int_eq(decode_hex("3f46 82"), HPACK_BAD); /* 101 */
    ck_assert_int_eq(decode_hex("3f45 82"), HPACK_GOOD);
    ck_assert_int_eq(decode_hex("82"), HPACK_GOOD);
    hpack_decoder_release(&decoder);
    start(8192);
    hpack_decoder_acknowledged(&decoder);
    ck_assert_int_eq(decode_hex("3fe1 3f 82"), HPACK_GOOD); /* 8192 */
    ck_assert_int_eq(decode_hex("3fe2 3f 82"), HPACK_BAD);
    hpack_decoder_release(&decoder);
    start(0);
    hpack_decoder_acknowledged(&decoder);
    ck_assert_int_eq(decode_hex("20 4001 6101 62"), HPACK_GOOD);
    ck_assert_uint_eq(decoder.count, 0);
    ck_assert_ptr_null(decoder.text);
    hpack_decoder_release(&decoder);
}
END_TEST

/* Every number of entries, sizes and order of evictions, against a table that is a plain array. */
enum { MODEL_MOST = 200 };
static struct model_entry { char name[80], value[600]; } model[MODEL_MOST];
static unsigned model_count;

static size_t model_size(const struct model_entry *entry) {
    return strlen(entry->name) + strlen(entry->value) + HPACK_FIELD_OVERHEAD;
}

static void model_add(const struct model_entry *entry, size_t capacity) {
    size_t size = 0;
    memmove(model + 1, model, (MODEL_MOST - 1) * sizeof *model);
    model[0] = *entry;
    model_count = model_count < MODEL_MOST ? model_count + 1 : model_count;
    for (unsigned i = 0; i < model_count; i++)
        if ((size += model_size(&model[i])) > capacity) {
            model_count = i;
            break;
        }
}

static unsigned next_random(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20);
}

static void random_text(char *to, size_t most) {
    size_t length = 1 + next_random() % most;
    for (size_t i = 0; i < length; i++)
        to[i] = (char)('a' + next_random() % 26);
    to[length] = '\0';
}

static char *put_text(char *at, const char *text) {
    struct slice from = slice_from(text);
    if (next_random() % 2 == 0) {
        *at++ = 0x7f;
        *at++ = (char)(0x80 | ((from.length - 127) & 0x7f));
        if (from.length >= 127) {
            *at++ = (char)((from.length - 127) >> 7);
            return slice_put(at, from);
        }
        at -= 2;
    }
    size_t coded = huffman_size(from);
    if (coded >= 127) {
        *at++ = (char)0xff;
        *at++ = (char)(0x80 | ((coded - 127) & 0x7f));
        *at++ = (char)((coded - 127) >> 7);
    } else {
        *at++ = (char)(0x80 | coded);
    }
    return huffman_put(at, from);
}

static void check_model(void) {
    char block[MODEL_MOST * 3], *at = block;
    for (unsigned i = 0; i < model_count; i++) {
        unsigned index = 62 + i;
        *at++ = (char)(0x80 | (index < 127 ? index : 127));
        if (index >= 127) {
            index -= 127;
            for (; index >= 0x80; index >>= 7)
                *at++ = (char)(0x80 | index);
            *at++ = (char)index;
        }
    }
    ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))), HPACK_GOOD);
    ck_assert_uint_eq(list.count, model_count);
    ck_assert_uint_eq(decoder.count, model_count);
    for (unsigned i = 0; i < model_count; i++) {
        ck_assert(slice_equal(list.fields[i].name, slice_from(model[i].name)));
        ck_assert(slice_equal(list.fields[i].value, slice_from(model[i].value)));
        ck_assert(list.fields[i].is_clean);
    }
}

START_TEST(the_table_is_a_queue) {
    static char block[4096];
    start(4096);
    model_count = 0;
    for (unsigned round = 0; round < 3000; round++) {
        struct model_entry entry;
        char *at = block;
        random_text(entry.value, round % 3 == 0 ? 500 : 20);
        if (model_count > 0 && model_count < 60 && round % 2 == 0) { /* the name of an entry */
            unsigned which = next_random() % model_count;
            strcpy(entry.name, model[which].name);
            *at++ = (char)(0x7f);
            *at++ = (char)(62 + which - 63 + (which == 0 ? 1 : 0));
            if (which == 0) {
                at = block;
                *at++ = 0x7e;
            }
        } else {
            random_text(entry.name, 30);
            *at++ = 0x40;
            at = put_text(at, entry.name);
        }
        at = put_text(at, entry.value);
        ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))), HPACK_GOOD);
        model_add(&entry, 4096);
        if (round % 10 == 0)
            check_model();
    }
    ck_assert_uint_le(decoder.text_room, 8192);
    ck_assert_uint_le(decoder.entry_room, 128);
    hpack_decoder_release(&decoder);
}
END_TEST

/* An entry as large as the table evicts all others and stays; a larger one empties the table. A new
 * entry may take its name from one that goes for it (§4.4). */
START_TEST(large_entries_evict) {
    static char block[5000];
    start(4096);
    ck_assert_int_eq(decode_hex("4003 6162 6301 62"), HPACK_GOOD);
    size_t value = 4096 - 32 - 3;
    char *at = block;
    *at++ = 0x7e;
    *at++ = 0x7f;
    *at++ = (char)(0x80 | ((value - 127) & 0x7f));
    *at++ = (char)((value - 127) >> 7);
    memset(at, 'v', value);
    ck_assert_int_eq(decode_bytes(slice_make(block, 4 + value)), HPACK_GOOD);
    ck_assert_uint_eq(decoder.count, 1);
    ck_assert_uint_eq(decoder.size, 4096);
    ck_assert_int_eq(decode_hex("be"), HPACK_GOOD);
    ck_assert(slice_equal(list.fields[0].name, SLICE("abc")));
    ck_assert_uint_eq(list.fields[0].value.length, value);
    block[2]++;
    block[4 + value] = 'v';
    ck_assert_int_eq(decode_bytes(slice_make(block, 5 + value)), HPACK_GOOD);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(decoder.count, 0);
    ck_assert_uint_eq(decoder.size, 0);
    hpack_decoder_release(&decoder);
}
END_TEST

/* A list that is too large is empty, and the table goes on as if it were not. */
START_TEST(the_table_survives_large_lists) {
    static char small[4096];
    start(4096);
    hpack_list_init(&list, small, sizeof small, list_fields, FIELDS_ROOM, 100);
    ck_assert_int_eq(decode_hex("4001 6101 62 4001 6301 64 4001 6501 66 4001 6701 68"), HPACK_GOOD);
    ck_assert(list.is_too_large && list.count == 0);
    ck_assert_uint_eq(decoder.count, 4);
    ck_assert_int_eq(decode_hex("c1"), HPACK_GOOD);
    ck_assert(!list.is_too_large);
    ck_assert_str_eq(shown(), "a: b\n");
    /* indexed fields, with and without an entry of the table */
    ck_assert_int_eq(decode_hex("8282 8282"), HPACK_GOOD);
    ck_assert(list.is_too_large);
    ck_assert_int_eq(decode_hex("c1c1 c1c1"), HPACK_GOOD);
    ck_assert(list.is_too_large);
    ck_assert_int_eq(decode_hex("8282 8282 80"), HPACK_BAD);
    /* more fields than there is room for */
    hpack_list_init(&list, small, sizeof small, list_fields, 3, 4000);
    ck_assert_int_eq(decode_hex("8282 82"), HPACK_GOOD);
    ck_assert(!list.is_too_large && list.count == 3);
    ck_assert_int_eq(decode_hex("8282 8282"), HPACK_GOOD);
    ck_assert(list.is_too_large && list.count == 0);
    hpack_decoder_release(&decoder);
}
END_TEST

/* A string for which the text has no room, with and without Huffman code. */
START_TEST(strings_larger_than_the_text_are_skipped) {
    static char small[4096], block[20000];
    start(4096);
    hpack_list_init(&list, small, sizeof small, list_fields, FIELDS_ROOM, 4000);
    for (unsigned huffman = 0; huffman < 2; huffman++) {
        size_t length = 5000;
        ck_assert_int_eq(decode_hex("4001 6101 62"), HPACK_GOOD);
        char *at = slice_put(block, from_hex("4001 7a"));
        *at++ = huffman ? (char)0xff : 0x7f;
        *at++ = (char)(0x80 | ((length - 127) & 0x7f));
        *at++ = (char)((length - 127) >> 7);
        memset(at, huffman ? 0 : '0', length); /* the code of '0' is five zeros */
        at += length;
        ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))), HPACK_GOOD);
        ck_assert(list.is_too_large);
        ck_assert_uint_eq(decoder.count, 0); /* an entry that is larger than the table empties it */
        at[-1] = 0x0b;                       /* neither a code nor padding */
        ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))),
                         huffman ? HPACK_BAD : HPACK_GOOD);
        /* the name is the long one */
        at = slice_put(block, from_hex("40"));
        *at++ = huffman ? (char)0xff : 0x7f;
        *at++ = (char)(0x80 | ((length - 127) & 0x7f));
        *at++ = (char)((length - 127) >> 7);
        memset(at, huffman ? 0 : '0', length);
        at = slice_put(at + length, from_hex("0162 4001 6101 62"));
        ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))), HPACK_GOOD);
        ck_assert_uint_eq(decoder.count, 1);
        ck_assert_int_eq(decode_hex("be"), HPACK_GOOD);
        ck_assert_str_eq(shown(), "a: b\n");
    }
    hpack_decoder_release(&decoder);
}
END_TEST

/* A list of some thousand references to one large entry costs little, and one that makes entries of
 * a large name again and again is broken off. */
START_TEST(bombs_are_broken_off) {
    static char block[60000];
    start(4096);
    size_t value = 4000;
    char *at = slice_put(block, from_hex("4001 61"));
    *at++ = 0x7f;
    *at++ = (char)(0x80 | ((value - 127) & 0x7f));
    *at++ = (char)((value - 127) >> 7);
    memset(at, 'v', value);
    ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block) + value)), HPACK_GOOD);
    memset(block, 0xbe, sizeof block);
    ck_assert_int_eq(decode_bytes(slice_make(block, sizeof block)), HPACK_GOOD);
    ck_assert(list.is_too_large);
    /* now the name is the large one */
    at = slice_put(block, from_hex("40"));
    *at++ = 0x7f;
    *at++ = (char)(0x80 | ((value - 127) & 0x7f));
    *at++ = (char)((value - 127) >> 7);
    memset(at, 'n', value);
    at = slice_put(at + value, from_hex("0161"));
    ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))), HPACK_GOOD);
    for (size_t i = 0; i < sizeof block; i += 2)
        memcpy(block + i, "\x7e\x00", 2);
    ck_assert_int_eq(decode_bytes(slice_make(block, sizeof block)), HPACK_TOO_MUCH);
    hpack_decoder_release(&decoder);
}
END_TEST

/* What is left of a block that ends early is refused, or is a shorter list; nothing is read behind
 * the end. Neither is it when a byte is another. */
START_TEST(every_cut_and_every_change_is_safe) {
    static const char *const blocks[] = {
        ("3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6"
         " 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3"),
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        "1008 7061 7373 776f 7264 0673 6563 7265 74",
    };
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        char whole[200];
        struct slice bytes = from_hex(blocks[i]);
        memcpy(whole, bytes.base, bytes.length);
        for (size_t length = 0; length <= bytes.length; length++) {
            start(4096);
            ck_assert_int_eq(decode_hex("4001 6101 62 4001 6301 64"), HPACK_GOOD);
            enum hpack_result result = decode_bytes(slice_make(whole, length));
            ck_assert(length < bytes.length || result == HPACK_GOOD);
            hpack_decoder_release(&decoder);
        }
        for (size_t at = 0; at < bytes.length; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                char saved = whole[at];
                start(4096);
                whole[at] = (char)byte;
                decode_bytes(slice_make(whole, bytes.length));
                decode_bytes(slice_make(whole, bytes.length));
                hpack_decoder_release(&decoder);
                whole[at] = saved;
            }
    }
}
END_TEST

START_TEST(names_are_identified) {
    start(4096);
    /* etag and x by name, content-type by the static table, ":protocol", ":Path" */
    ck_assert_int_eq(decode_hex("0004 6574 6167 0131 0001 7801 31 0f10 0131 "
                                "0009 3a70 726f 746f 636f 6c01 31 0005 3a50 6174 6801 31"),
                     HPACK_GOOD);
    ck_assert_uint_eq(list.count, 5);
    ck_assert_uint_eq(list.fields[0].id, HTTP_ETAG);
    ck_assert_uint_eq(list.fields[1].id, HTTP_OTHER);
    ck_assert_uint_eq(list.fields[2].id, HTTP_CONTENT_TYPE);
    ck_assert_uint_eq(list.fields[3].pseudo, HPACK_PROTOCOL);
    ck_assert_uint_eq(list.fields[4].pseudo, HPACK_UNKNOWN);
    for (unsigned i = 0; i < 5; i++)
        ck_assert(list.fields[i].is_clean);
    ck_assert_uint_eq(list.fields[0].pseudo, HPACK_NONE);
}
END_TEST

/* The texts of RFC 9113 §8.2.1: clean or not, from a literal and from the table. */
static const struct {
    const char *name, *value;
    bool clean;
} cleanliness[] = {
    {"a", "b", true},       {"a", "", true},       {"a", "b c\td", true}, {"a", "\xff\x80", true},
    {"x-1_2!#", "b", true}, {"A", "b", false},     {"aB", "b", false},    {"a b", "b", false},
    {"a:", "b", false},     {"\x80", "b", false},  {"", "b", false},      {"a", " b", false},
    {"a", "b ", false},     {"a", "\tb", false},   {"a", "b\t", false},   {"a", "b\rc", false},
    {"a", "b\nc", false},   {"a", "b\x7f", false}, {"a", "\x01", false},  {"a\r", "b", false},
};

START_TEST(clean_fields_are_marked) {
    for (size_t i = 0; i < COUNT_OF(cleanliness); i++) {
        char block[100], *at = block;
        struct slice name = slice_from(cleanliness[i].name);
        struct slice value = slice_from(cleanliness[i].value);
        start(4096);
        *at++ = 0x40;
        *at++ = (char)name.length;
        at = slice_put(at, name);
        *at++ = (char)value.length;
        at = slice_put(at, value);
        *at++ = (char)0xbe; /* the same again */
        ck_assert_int_eq(decode_bytes(slice_make(block, (size_t)(at - block))), HPACK_GOOD);
        ck_assert_msg(list.fields[0].is_clean == cleanliness[i].clean, "%zu", i);
        ck_assert_msg(list.fields[1].is_clean == cleanliness[i].clean, "%zu", i);
        /* another value behind the same name */
        ck_assert_int_eq(decode_hex("7e01 62"), HPACK_GOOD);
        bool good_name = cleanliness[i].name[0] == 'a' || cleanliness[i].name[0] == 'x';
        good_name = good_name && strpbrk(cleanliness[i].name, "B :\r") == NULL;
        ck_assert_msg(list.fields[0].is_clean == good_name, "%zu", i);
        hpack_decoder_release(&decoder);
    }
    start(4096);
    ck_assert_int_eq(decode_hex("4001 6101 00"), HPACK_GOOD);
    ck_assert(!list.fields[0].is_clean);
    hpack_decoder_release(&decoder);
}
END_TEST

START_TEST(huffman_code_comes_back) {
    char text[256], coded[1024], back[256];
    size_t length;
    for (unsigned i = 0; i < 256; i++)
        text[i] = (char)i;
    for (unsigned begin = 0; begin < 256; begin++)
        for (unsigned end = begin; end <= 256; end += 1 + (end - begin) / 3) {
            struct slice from = slice_make(text + begin, end - begin);
            size_t size = (size_t)(huffman_put(coded, from) - coded);
            ck_assert_uint_eq(size, huffman_size(from));
            struct slice input = guard_put(slice_make(coded, size));
            ck_assert(huffman_decode(input, back, sizeof back, &length));
            ck_assert(slice_equal(slice_make(back, length), from));
            /* with less room, it is as long */
            back[end / 2] = 'x';
            ck_assert(huffman_decode(input, back, end / 2, &length));
            ck_assert_uint_eq(length, from.length);
            ck_assert(end / 2 > from.length || back[end / 2] == 'x');
        }
}
END_TEST

/* Encoder */

static const char *encoded(const char *from, const char *to) {
    start(4096);
    ck_assert_int_eq(decode_bytes(slice_make(from, (size_t)(to - from))), HPACK_GOOD);
    ck_assert_uint_eq(decoder.count, 0);
    for (unsigned i = 0; i < list.count; i++)
        ck_assert(list.fields[i].is_clean);
    hpack_decoder_release(&decoder);
    return shown();
}

static const char stored[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/html\r\n"
                             "Connection: keep-alive\r\n"
                             "ETag: \"1\"\r\n"
                             "X-Powered-By-Somebody:   PHP  \r\n"
                             "Transfer-Encoding: chunked\r\n"
                             "Keep-Alive: 5\r\n"
                             "Proxy-Connection: close\r\n"
                             "Upgrade: h2c\r\n"
                             "TE: trailers\r\n"
                             "Set-Cookie: a=b\r\n"
                             "Empty:\r\n"
                             "\r\n";
static const char stored_shown[] = ":status: 200\n!content-type: text/html\n!etag: \"1\"\n"
                                   "!x-powered-by-somebody: PHP\n!set-cookie: a=b\n!empty: \n";

START_TEST(stored_heads_are_encoded) {
    char block[1000];
    char *at = hpack_put_response_text(hpack_put_no_table(block), slice_from(stored));
    ck_assert_int_eq(block[0], 0x20);
    ck_assert_uint_le((size_t)(at - block), hpack_text_room(sizeof stored - 1));
    ck_assert_str_eq(encoded(block, at), stored_shown);
    /* without the empty line */
    at = hpack_put_response_text(block, slice_make(stored, sizeof stored - 3));
    ck_assert_str_eq(encoded(block, at), stored_shown);
    at = hpack_put_lines(block, SLICE(""));
    ck_assert_ptr_eq(at, block);
    for (size_t length = 20; length < sizeof stored; length++) {
        struct slice cut = guard_put(slice_make(stored, length));
        hpack_put_response_text(block, cut);
    }
}
END_TEST

START_TEST(heads_are_encoded) {
    struct http_head head;
    char block[1000];
    head_from(&head, "Host: a\nContent-Type: text/html\nX-A: 1\nAccept-Language: de\nTE: trailers\n"
                     "Authorization: Basic x\nConnection: X-A\nCookie: c=d\n");
    char *at = hpack_put_fields(block, &head);
    ck_assert_uint_le((size_t)(at - block), hpack_fields_room(&head));
    ck_assert_str_eq(encoded(block, at), "!content-type: text/html\n!x-a: 1\n!accept-language: de\n"
                                         "!authorization: Basic x\n!cookie: c=d\n");
}
END_TEST

START_TEST(pseudo_fields_are_encoded) {
    char block[1000], *at = block;
    at = hpack_put_method(at, SLICE("GET"));
    at = hpack_put_method(at, SLICE("POST"));
    at = hpack_put_method(at, SLICE("PURGE"));
    at = hpack_put_scheme(at, SLICE("https"));
    at = hpack_put_scheme(at, SLICE("http"));
    at = hpack_put_authority(at, SLICE("a:1"));
    at = hpack_put_path(at, SLICE("/"));
    at = hpack_put_path(at, SLICE("/a?b"));
    at = hpack_put_number(at, HTTP_AGE, 1234567890123);
    ck_assert_str_eq(encoded(block, at),
                     ":method: GET\n:method: POST\n!:method: PURGE\n:scheme: https\n:scheme: http\n"
                     "!:authority: a:1\n:path: /\n!:path: /a?b\n!age: 1234567890123\n");
    for (unsigned status = 100; status < 1000; status++) {
        char text[32];
        at = hpack_put_status(hpack_put_no_table(block), status);
        ck_assert_int_le(at - block, HPACK_STATUS_ROOM);
        sprintf(text, "%s:status: %u\n", (unsigned char)at[-1] & 0x80 ? "" : "!", status);
        ck_assert_str_eq(encoded(block, at), text);
    }
}
END_TEST

/* Numbers of one byte and more in front of texts, and the room that they take. */
static const size_t lengths[] = {0,   1,   2,   13,  14,  15,  16,  17,    31,    32,    33,   125,
                                 126, 127, 128, 129, 254, 255, 256, 16509, 16510, 16511, 65000};

START_TEST(lengths_are_encoded) {
    static char value[70000], block[70100];
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct slice text = slice_make(value, lengths[i]);
        char *at = hpack_put_field(block, SLICE("X"), text);
        ck_assert_uint_le((size_t)(at - block), HPACK_ROOM(1 + lengths[i]));
        encoded(block, at);
        ck_assert_uint_eq(list.count, 1);
        ck_assert(slice_equal(list.fields[0].value, text));
        if (lengths[i] == 0)
            continue;
        at = hpack_put_field(block, text, SLICE("1"));
        ck_assert_uint_le((size_t)(at - block), HPACK_ROOM(1 + lengths[i]));
        encoded(block, at);
        ck_assert(slice_equal(list.fields[0].name, text));
    }
}
END_TEST

/* The text of a line, "NAME:BLANKS VALUE LAST\r\n", with these lines behind it, in front of a forbidden
 * page. */
static struct slice line_of(struct slice name, const char *blanks, struct slice value,
                            const char *last, const char *behind) {
    static char line[70100];
    char *at = slice_put(slice_put(line, name), SLICE(":"));
    at = slice_put(slice_put(at, slice_from(blanks)), value);
    at = slice_put(at, slice_from(last));
    at = slice_put(slice_put(at, SLICE("\r\n")), slice_from(behind));
    return guard_put(slice_make(line, (size_t)(at - line)));
}

static void check_line(struct slice name, struct slice value, const char *behind) {
    static const char *const blanks[] = {"", " ", " ", " ", "  ", "\t", " \t "};
    static const char *const last[] = {"", "", " ", "\t", "", "", " \t "};
    static char block[70100 + 2000];
    for (size_t i = 0; i < COUNT_OF(blanks); i++) {
        struct slice lines = line_of(name, blanks[i], value, last[i], behind);
        char *at = hpack_put_lines(block, lines);
        ck_assert_uint_le((size_t)(at - block), hpack_text_room(lines.length));
        encoded(block, at);
        ck_assert_uint_eq(list.count, *behind == 'V' ? 2 : 1);
        ck_assert(slice_equal_nocase(list.fields[0].name, name));
        ck_assert(slice_equal(list.fields[0].value, value));
    }
}

/* Lines with names and values of every length, at the end of the text and before it. */
START_TEST(lines_of_every_length_are_encoded) {
    static const char *const names[] = {"X",
                                        "Age",
                                        "X-Cache-Status",
                                        "X-Cache-Status-",
                                        "X-Cache-Status-1",
                                        "x_cache^status~17",
                                        "Access-Control-Allow-Origin",
                                        "Access-Control-Allow-Headers-Now",
                                        "Access-Control-Allow-Headers-Now-",
                                        "Strict-Transport-Security",
                                        "content-type",
                                        "CONTENT-TYPE",
                                        "Content-Typf",
                                        "Content-Languagf"};
    static char value[70000];
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        for (size_t k = 0; k < COUNT_OF(lengths); k++) {
            struct slice text = slice_make(value, lengths[k]);
            check_line(slice_from(names[i]), text, "");
            check_line(slice_from(names[i]), text, "\r\n");
            check_line(slice_from(names[i]), text, "Via: 1.1 a\r\n");
            check_line(slice_from(names[i]), text, "Via: 1.1 and a long name of a proxy\r\n");
        }
}
END_TEST

Suite *hpack_suite(void) {
    const TTest *const tests[] = {
        literals_of_the_rfc,
        requests_of_the_rfc,
        responses_of_the_rfc,
        wrong_blocks_are_refused,
        an_empty_table_has_no_entries,
        the_table_follows_our_settings,
        the_table_is_a_queue,
        large_entries_evict,
        the_table_survives_large_lists,
        strings_larger_than_the_text_are_skipped,
        bombs_are_broken_off,
        every_cut_and_every_change_is_safe,
        names_are_identified,
        clean_fields_are_marked,
        huffman_code_comes_back,
        stored_heads_are_encoded,
        heads_are_encoded,
        pseudo_fields_are_encoded,
        lengths_are_encoded,
        lines_of_every_length_are_encoded,
    };
    return suite_of("hpack", tests, COUNT_OF(tests));
}
