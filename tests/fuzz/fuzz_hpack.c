/*
 * HPACK, against that of libnghttp2.
 *
 * The input is a connection: a byte for the size of the table that we announce, and blocks, each
 * with its length in two bytes. Both decoders read them and agree about every field, also behind
 * blocks whose list is too large. What was decoded goes through nghttp2's deflater, with a table of
 * its own, and comes back. What is a list of field lines of HTTP/1.1 is written by our encoder, from
 * the text and from the parsed head alike, and nghttp2's inflater finds the same fields in it.
 *
 * We refuse more: a third change of the table's size in a block, and numbers of more than six bytes.
 */
#include "fuzz_hpack.h"
#include "base/assert.h"
#include "http/head_parser.h"
#include "http2/hpack.h"
#include "http2/hpack_encode.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

enum { TEXT_ROOM = 1 << 16, FIELDS_ROOM = 2048, SIZE_MOST = 1 << 15 };

/* One field of nghttp2's, copied. */
struct peer_field {
    struct slice name, value;
    bool never_indexed;
};

static struct peer_list {
    struct peer_field fields[FIELDS_ROOM];
    unsigned count; /* may be more than FIELDS_ROOM */
    size_t size;    /* as lists are counted */
    char text[4 * TEXT_ROOM];
    size_t used;
} peer;

static struct slice keep_text(const uint8_t *bytes, size_t length) {
    char *to = peer.text + peer.used;
    if (length > sizeof peer.text - peer.used)
        return slice_make(NULL, 0);
    if (length > 0)
        memcpy(to, bytes, length);
    peer.used += length;
    return slice_make(to, length);
}

static void keep_field(const nghttp2_nv *field) {
    peer.size += field->namelen + field->valuelen + HPACK_FIELD_OVERHEAD;
    if (peer.count < FIELDS_ROOM && peer.size <= SIZE_MOST)
        peer.fields[peer.count] = (struct peer_field){
            keep_text(field->name, field->namelen),
            keep_text(field->value, field->valuelen),
            field->flags & NGHTTP2_NV_FLAG_NO_INDEX,
        };
    peer.count++;
}

/* False: nghttp2 refuses the block. */
static bool inflate(nghttp2_hd_inflater *inflater, struct slice block) {
    const uint8_t *at = (const uint8_t *)block.base;
    size_t left = block.length;
    peer.count = 0;
    peer.used = peer.size = 0;
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, at, left, 1);
        if (used < 0)
            return false;
        at += used;
        left -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            keep_field(&field);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            return nghttp2_hd_inflate_end_headers(inflater) == 0;
    }
}

/* A number in front of which `mask` says how many bits it has; it stands at *at. */
static bool is_long_number(const uint8_t *at, const uint8_t *end, unsigned mask) {
    if (at == end || (*at & mask) != mask)
        return false;
    for (unsigned i = 1; i <= 5; i++)
        if (end - at <= (ptrdiff_t)i || at[i] < 0x80)
            return false;
    return true;
}

/* May we refuse a block that nghttp2 accepts? It begins with three sizes or more, or there is
 * anywhere what may be a number of more than six bytes, or one above 2^31-1. */
static bool may_refuse(struct slice block) {
    const uint8_t *at = (const uint8_t *)block.base, *end = at + block.length;
    unsigned sizes = 0;
    for (const uint8_t *size = at; size < end && (*size & 0xe0) == 0x20; sizes++) {
        bool more = (*size++ & 0x1f) == 0x1f;
        while (more && size < end)
            more = *size++ & 0x80;
    }
    for (; at < end; at++)
        if (is_long_number(at, end, 0x0f))
            return true;
    return sizes > 2;
}

static struct hpack_list list;

static void compare_lists(void) {
    bool too_large = peer.count > FIELDS_ROOM || peer.size > SIZE_MOST;
    ASSERT(too_large == list.is_too_large);
    if (too_large) {
        ASSERT(list.count == 0);
        return;
    }
    ASSERT(list.count == peer.count && list.size == peer.size);
    for (unsigned i = 0; i < list.count; i++) {
        const struct hpack_field *field = &list.fields[i];
        ASSERT(slice_equal(field->name, peer.fields[i].name));
        ASSERT(slice_equal(field->value, peer.fields[i].value));
        ASSERT(field->never_indexed == peer.fields[i].never_indexed);
    }
}

/* What was decoded is deflated by nghttp2 and decoded again. */
static void check_deflated(nghttp2_hd_deflater *deflater, struct hpack_decoder *decoder) {
    static nghttp2_nv fields[FIELDS_ROOM];
    static char again_text[TEXT_ROOM];
    static struct hpack_field again_fields[FIELDS_ROOM];
    struct hpack_list again;
    for (unsigned i = 0; i < list.count; i++)
        fields[i] = (nghttp2_nv){
            (uint8_t *)list.fields[i].name.base, (uint8_t *)list.fields[i].value.base,
            list.fields[i].name.length, list.fields[i].value.length,
            list.fields[i].never_indexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
    size_t bound = nghttp2_hd_deflate_bound(deflater, fields, list.count);
    char *block = malloc(bound + 1);
    ssize_t length = nghttp2_hd_deflate_hd(deflater, (uint8_t *)block, bound, fields, list.count);
    ASSERT(length >= 0);
    hpack_list_init(&again, again_text, sizeof again_text, again_fields, FIELDS_ROOM, SIZE_MOST);
    ASSERT(hpack_decode(decoder, slice_make(block, (size_t)length), &again) == HPACK_GOOD);
    ASSERT(again.count == list.count && !again.is_too_large);
    for (unsigned i = 0; i < list.count; i++) {
        ASSERT(slice_equal(again.fields[i].name, list.fields[i].name));
        ASSERT(slice_equal(again.fields[i].value, list.fields[i].value));
        ASSERT(again.fields[i].id == list.fields[i].id);
        ASSERT(again.fields[i].pseudo == list.fields[i].pseudo);
        ASSERT(again.fields[i].is_clean == list.fields[i].is_clean);
    }
    free(block);
}

static struct slice next_block(const uint8_t **at, const uint8_t *end) {
    size_t length = (size_t)(*at)[0] << 8 | (*at)[1];
    *at += 2;
    if (length > (size_t)(end - *at))
        length = (size_t)(end - *at);
    struct slice block = slice_make((const char *)*at, length);
    *at += length;
    return block;
}

/* Does it go on behind this block? */
static bool check_block(struct hpack_decoder *decoder, nghttp2_hd_inflater *inflater,
                        struct slice block) {
    char *copy = malloc(block.length + 1); /* with a guard of the sanitizer behind the block */
    char *own = realloc(copy, block.length > 0 ? block.length : 1);
    if (block.length > 0)
        memcpy(own, block.base, block.length);
    enum hpack_result result = hpack_decode(decoder, slice_make(own, block.length), &list);
    free(own);
    if (result == HPACK_TOO_MUCH)
        return false;
    if (!inflate(inflater, block)) {
        ASSERT(result == HPACK_BAD);
        return false;
    }
    if (result == HPACK_BAD) {
        ASSERT(may_refuse(block));
        return false;
    }
    ASSERT(decoder->size <= decoder->capacity && decoder->capacity <= decoder->limit);
    ASSERT(nghttp2_hd_inflate_get_dynamic_table_size(inflater) == decoder->size);
    ASSERT(nghttp2_hd_inflate_get_num_table_entries(inflater) == decoder->count + 61);
    compare_lists();
    return true;
}

static void check_connection(const uint8_t *data, size_t size) {
    static char text[TEXT_ROOM];
    static struct hpack_field fields[FIELDS_ROOM];
    const uint8_t *at = data + 1, *end = data + size;
    uint32_t announced = (uint32_t)data[0] * 32;
    struct hpack_decoder decoder, plain;
    nghttp2_hd_inflater *inflater;
    nghttp2_hd_deflater *deflater;
    hpack_decoder_init(&decoder, announced);
    hpack_decoder_init(&plain, HPACK_TABLE_DEFAULT);
    hpack_list_init(&list, text, sizeof text, fields, FIELDS_ROOM, SIZE_MOST);
    ASSERT(nghttp2_hd_inflate_new(&inflater) == 0);
    ASSERT(nghttp2_hd_deflate_new(&deflater, HPACK_TABLE_DEFAULT) == 0);
    if (announced > HPACK_TABLE_DEFAULT)
        nghttp2_hd_inflate_change_table_size(inflater, announced);
    for (unsigned count = 0; end - at > 2; count++) {
        if (count == 1) { /* the peer acknowledges our settings */
            hpack_decoder_acknowledged(&decoder);
            nghttp2_hd_inflate_change_table_size(inflater, announced);
        }
        if (!check_block(&decoder, inflater, next_block(&at, end)))
            break;
        check_deflated(deflater, &plain);
    }
    nghttp2_hd_inflate_del(inflater);
    nghttp2_hd_deflate_del(deflater);
    hpack_decoder_release(&decoder);
    hpack_decoder_release(&plain);
}

/* The encoder */

static bool is_of_connection(enum http_name id) {
    return id == HTTP_CONNECTION || id == HTTP_KEEP_ALIVE || id == HTTP_PROXY_CONNECTION ||
           id == HTTP_TE || id == HTTP_TRANSFER_ENCODING || id == HTTP_UPGRADE;
}

/* A block of ours holds the fields of the head, but for those of connections; nothing of it goes
 * into a table. */
static void check_encoded(const struct http_head *head, const char *block, const char *end,
                          bool has_host) {
    nghttp2_hd_inflater *inflater;
    unsigned found = 0;
    ASSERT(nghttp2_hd_inflate_new(&inflater) == 0);
    ASSERT(inflate(inflater, slice_make(block, (size_t)(end - block))));
    ASSERT(nghttp2_hd_inflate_get_dynamic_table_size(inflater) == 0);
    nghttp2_hd_inflate_del(inflater);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (is_of_connection(field->id) || (field->id == HTTP_HOST && !has_host))
            continue;
        ASSERT(found < peer.count);
        const struct peer_field *written = &peer.fields[found++];
        ASSERT(slice_equal_nocase(written->name, field->name));
        for (size_t k = 0; k < written->name.length; k++)
            ASSERT(written->name.base[k] < 'A' || written->name.base[k] > 'Z');
        ASSERT(slice_equal(written->value, field->value));
        ASSERT(written->never_indexed);
    }
    ASSERT(found == peer.count);
}

/* The encoder gets lines that trailer_filter or a writer of heads has made. */
static bool has_blank_before_colon(const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++)
        if (head->fields[i].name.base[head->fields[i].name.length] != ':')
            return true;
    return false;
}

static void check_encoder(struct slice text) {
    struct http_head head;
    ssize_t length = http_head_parse_fields(&head, text.base, text.length);
    if (length <= 0 || has_blank_before_colon(&head))
        return;
    size_t room = hpack_text_room((size_t)length);
    char *lines = slice_dup(slice_make(text.base, (size_t)length)), *block = malloc(room);
    char *bare = realloc(lines, (size_t)length);
    char *end = hpack_put_lines(block, slice_make(bare, (size_t)length));
    ASSERT((size_t)(end - block) <= room);
    check_encoded(&head, block, end, true);
    free(block);
    free(bare);
    block = malloc(hpack_fields_room(&head) + 1);
    end = hpack_put_fields(block, &head);
    ASSERT((size_t)(end - block) <= hpack_fields_room(&head));
    check_encoded(&head, block, end, false);
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    check_connection(data, size);
    check_encoder(slice_make((const char *)data + 1, size - 1));
    return 0;
}
