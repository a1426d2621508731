#include "http2/hpack.h"

#include "base/assert.h"
#include "http/bytes.h"
#include "http2/hpack_static.h"
#include "http2/huffman.h"

/* An entry of the dynamic table: its name is at `at` of the table's text, its value behind it. */
struct hpack_entry {
    uint32_t at, name_length, value_length;
    uint8_t id, pseudo;
    bool is_clean;
};

enum { ENTRIES_FIRST = 8, TABLE_TEXT_FIRST = 512, RESIZES_MOST = 2 };

void hpack_decoder_init(struct hpack_decoder *decoder, uint32_t limit) {
    *decoder = (struct hpack_decoder){
        .announced = limit,
        .limit = limit > HPACK_TABLE_DEFAULT ? limit : HPACK_TABLE_DEFAULT,
        .capacity = HPACK_TABLE_DEFAULT,
    };
}

void hpack_decoder_release(struct hpack_decoder *decoder) {
    free(decoder->entries);
    free(decoder->text);
    *decoder = (struct hpack_decoder){.limit = 0};
}

void hpack_decoder_acknowledged(struct hpack_decoder *decoder) {
    decoder->limit = decoder->announced;
    decoder->must_resize = decoder->capacity > decoder->limit;
}

/* The table */

static inline struct hpack_entry *hpack_entry_at(const struct hpack_decoder *decoder,
                                                 uint32_t back) {
    return &decoder->entries[(decoder->newest - back) & (decoder->entry_room - 1)];
}

static void evict(struct hpack_decoder *decoder) {
    const struct hpack_entry *oldest = hpack_entry_at(decoder, decoder->count - 1);
    uint32_t bytes = oldest->name_length + oldest->value_length;
    decoder->size -= bytes + HPACK_FIELD_OVERHEAD;
    decoder->text_begin += bytes;
    if (--decoder->count == 0)
        decoder->text_begin = decoder->text_end = 0;
}

static void shrink_to(struct hpack_decoder *decoder, uint32_t size) {
    while (decoder->size > size)
        evict(decoder);
}

static void grow_entries(struct hpack_decoder *decoder) {
    uint32_t room = decoder->entry_room == 0 ? ENTRIES_FIRST : 2 * decoder->entry_room;
    struct hpack_entry *entries = xmalloc(room * sizeof *entries);
    for (uint32_t i = 0; i < decoder->count; i++)
        entries[i] = *hpack_entry_at(decoder, decoder->count - 1 - i);
    free(decoder->entries);
    decoder->entries = entries;
    decoder->entry_room = room;
    decoder->newest = decoder->count - 1;
}

static void move_text(struct hpack_decoder *decoder, char *to) {
    uint32_t begin = decoder->text_begin;
    if (decoder->text_end > begin)
        memmove(to, decoder->text + begin, decoder->text_end - begin);
    for (uint32_t i = 0; i < decoder->count; i++)
        hpack_entry_at(decoder, i)->at -= begin;
    decoder->text_begin = 0;
    decoder->text_end -= begin;
}

/* Makes room for so much text behind that of the newest entry. The text moves to the front when at
 * least half of it is of entries that are gone, so that each byte moves about once; if fewer are,
 * the room grows, until it is twice the largest table. */
static void make_text_room(struct hpack_decoder *decoder, uint32_t bytes) {
    uint32_t live = decoder->text_end - decoder->text_begin;
    uint32_t room = decoder->text_room == 0 ? TABLE_TEXT_FIRST : decoder->text_room;
    while (room < 2 * (live + bytes))
        room *= 2;
    if (room == decoder->text_room) {
        move_text(decoder, decoder->text);
        return;
    }
    char *text = xmalloc(room);
    move_text(decoder, text);
    free(decoder->text);
    decoder->text = text;
    decoder->text_room = room;
}

/* RFC 7541 §4.4: entries are evicted until there is room, and "It is not an error to attempt to add
 * an entry that is larger than the maximum size; an attempt to add an entry larger than the maximum
 * size causes the table to be emptied". */
static void hpack_add(struct hpack_decoder *decoder, const struct hpack_field *field) {
    size_t size = field->name.length + field->value.length + HPACK_FIELD_OVERHEAD;
    if (size > decoder->capacity) {
        shrink_to(decoder, 0);
        return;
    }
    shrink_to(decoder, decoder->capacity - (uint32_t)size);
    uint32_t bytes = (uint32_t)size - HPACK_FIELD_OVERHEAD;
    if (decoder->text == NULL || decoder->text_room - decoder->text_end < bytes)
        make_text_room(decoder, bytes);
    if (decoder->count == decoder->entry_room)
        grow_entries(decoder);
    char *at = decoder->text + decoder->text_end;
    decoder->newest++;
    decoder->count++;
    *hpack_entry_at(decoder, 0) = (struct hpack_entry){
        .at = decoder->text_end,
        .name_length = (uint32_t)field->name.length,
        .value_length = (uint32_t)field->value.length,
        .id = field->id,
        .pseudo = field->pseudo,
        .is_clean = field->is_clean,
    };
    slice_put(slice_put(at, field->name), field->value);
    decoder->text_end += bytes;
    decoder->size += (uint32_t)size;
}

/* The block */

/* What is left of a block, and what becomes of it. */
struct hpack_scan {
    const unsigned char *at, *end;
    struct hpack_decoder *decoder;
    struct hpack_list *list;
    size_t work, work_most; /* bytes copied since the list is too large */
};

static void give_list_up(struct hpack_list *list) {
    list->is_too_large = true;
    list->count = 0;
    list->text_used = 0;
}

/* Adds a field whose texts are in the list's already. */
static inline void hpack_emit(struct hpack_list *list, const struct hpack_field *field) {
    list->size += field->name.length + field->value.length + HPACK_FIELD_OVERHEAD;
    if (list->count == list->room || list->size > list->size_most)
        give_list_up(list);
    else
        list->fields[list->count++] = *field;
}

/* The rest of a number that does not fit its prefix (RFC 7541 §5.1). */
static bool take_rest_of_number(struct hpack_scan *scan, uint32_t *number) {
    enum { BYTES_MOST = 5 };
    uint64_t value = *number;
    for (unsigned i = 0; i < BYTES_MOST; i++) {
        if (scan->at == scan->end)
            return false;
        unsigned char byte = *scan->at++;
        value += (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *number = (uint32_t)value;
            return value <= INT32_MAX;
        }
    }
    return false;
}

/* A number whose prefix is in the low bits of the next byte. */
static inline bool hpack_take_number(struct hpack_scan *scan, unsigned mask, uint32_t *number) {
    *number = *scan->at++ & mask;
    return *number < mask || take_rest_of_number(scan, number);
}

/* A string (§5.2), to `to`. Its length may be more than `room`: then it is not there. */
static bool hpack_take_string(struct hpack_scan *scan, char *to, size_t room,
                              struct slice *string) {
    uint32_t length;
    if (scan->at == scan->end)
        return false;
    bool is_huffman = *scan->at & 0x80;
    if (!hpack_take_number(scan, 0x7f, &length) || length > (size_t)(scan->end - scan->at))
        return false;
    struct slice bytes = slice_make((const char *)scan->at, length);
    scan->at += length;
    *string = slice_make(to, length);
    if (is_huffman)
        return huffman_decode(bytes, to, room, &string->length);
    if (length <= room)
        slice_put(to, bytes);
    return true;
}

/* They stand at the front of the static table. */
static uint8_t find_pseudo(struct slice name) {
    for (const struct hpack_field *known = hpack_static + 1; known->pseudo != HPACK_NONE; known++)
        if (slice_equal(name, known->name))
            return known->pseudo;
    return slice_equal(name, SLICE(":protocol")) ? HPACK_PROTOCOL : HPACK_UNKNOWN;
}

static bool is_clean_name(struct slice name) {
    const char *end = name.base + name.length;
    for (const char *at = name.base; at < end; at++)
        if (!bytes_is(*at, BYTES_TOKEN) || (*at >= 'A' && *at <= 'Z'))
            return false;
    return name.length > 0;
}

static inline bool hpack_is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool is_clean_value(struct slice value) {
    if (value.length == 0)
        return true;
    const char *end = value.base + value.length;
    return !hpack_is_blank(value.base[0]) && !hpack_is_blank(end[-1]) &&
           bytes_skip(value.base, end, BYTES_TEXT) == end;
}

bool hpack_is_clean(struct slice name, struct slice value) {
    return is_clean_name(name) && is_clean_value(value);
}

/* Finds out what a name is that no table has. */
static void hpack_identify(struct hpack_field *field) {
    if (field->name.length > 0 && field->name.base[0] == ':')
        field->pseudo = find_pseudo(field->name);
    else
        field->id = (uint8_t)http_name_lookup(field->name);
    field->is_clean = field->pseudo != HPACK_NONE || is_clean_name(field->name);
}

/* The name of an entry of a table, and what is known of it. One of the dynamic table is copied,
 * since the entry may be evicted. */
static bool take_name_of_entry(struct hpack_scan *scan, uint32_t index, char *to, size_t room,
                               struct hpack_field *field) {
    if (index <= HPACK_STATIC_COUNT) {
        *field = hpack_static[index];
        return true;
    }
    const struct hpack_decoder *decoder = scan->decoder;
    uint32_t back = index - HPACK_STATIC_COUNT - 1;
    if (back >= decoder->count)
        return false;
    const struct hpack_entry *entry = hpack_entry_at(decoder, back);
    field->id = entry->id;
    field->pseudo = entry->pseudo;
    field->name = slice_make(to, entry->name_length);
    field->is_clean = entry->pseudo != HPACK_NONE;
    if (entry->name_length <= room) {
        memcpy(to, decoder->text + entry->at, entry->name_length);
        field->is_clean = field->is_clean || entry->is_clean || is_clean_name(field->name);
    }
    scan->work += entry->name_length;
    return true;
}

/* Takes a literal (§6.2) whose index has `mask` for its prefix. Both texts are put to the list's
 * text. *field is as long as what was sent; it is not there if that is more than the room. */
static bool take_literal(struct hpack_scan *scan, unsigned mask, struct hpack_field *field) {
    struct hpack_list *list = scan->list;
    char *to = list->text + list->text_used;
    size_t room = list->text_room - list->text_used;
    uint32_t index;
    *field = (struct hpack_field){.id = HTTP_OTHER};
    if (!hpack_take_number(scan, mask, &index))
        return false;
    if (index > 0) {
        if (!take_name_of_entry(scan, index, to, room, field))
            return false;
    } else {
        if (!hpack_take_string(scan, to, room, &field->name))
            return false;
        if (field->name.length <= room)
            hpack_identify(field);
    }
    size_t used = field->name.base != to      ? 0
                  : field->name.length < room ? field->name.length
                                              : room;
    if (!hpack_take_string(scan, to + used, room - used, &field->value))
        return false;
    if (field->value.length <= room - used)
        field->is_clean = field->is_clean && is_clean_value(field->value);
    return true;
}

static bool has_room(const struct hpack_list *list, const struct hpack_field *field) {
    bool own_name = field->name.base == list->text + list->text_used;
    return (own_name ? field->name.length : 0) + field->value.length <=
           list->text_room - list->text_used;
}

/* A literal for which the list has no text left is read again: into the text of the list, which is
 * of no use any more. One that is too large even for that is larger than the table. */
static bool decode_literal(struct hpack_scan *scan, unsigned mask, bool is_added) {
    struct hpack_list *list = scan->list;
    const unsigned char *begin = scan->at;
    struct hpack_field field;
    if (!take_literal(scan, mask, &field))
        return false;
    if (!list->is_too_large && !has_room(list, &field)) {
        give_list_up(list);
        scan->at = begin;
        if (!take_literal(scan, mask, &field))
            return false;
    }
    field.never_indexed = !is_added && *begin & 0x10;
    if (is_added)
        hpack_add(scan->decoder, &field);
    if (list->is_too_large) {
        scan->work += field.name.length + field.value.length;
        return true;
    }
    if (field.name.base == list->text + list->text_used)
        list->text_used += field.name.length;
    list->text_used += field.value.length;
    hpack_emit(list, &field);
    return true;
}

static bool decode_entry(struct hpack_scan *scan, uint32_t back) {
    const struct hpack_decoder *decoder = scan->decoder;
    struct hpack_list *list = scan->list;
    if (back >= decoder->count)
        return false;
    const struct hpack_entry *entry = hpack_entry_at(decoder, back);
    size_t length = (size_t)entry->name_length + entry->value_length;
    if (list->is_too_large)
        return true;
    if (length > list->text_room - list->text_used) {
        give_list_up(list);
        return true;
    }
    char *to = list->text + list->text_used;
    memcpy(to, decoder->text + entry->at, length);
    list->text_used += length;
    struct hpack_field field = {
        .name = {to, entry->name_length},
        .value = {to + entry->name_length, entry->value_length},
        .id = entry->id,
        .pseudo = entry->pseudo,
        .is_clean = entry->is_clean,
    };
    hpack_emit(list, &field);
    return true;
}

static inline bool decode_indexed(struct hpack_scan *scan) {
    uint32_t index;
    if (!hpack_take_number(scan, 0x7f, &index) || index == 0)
        return false;
    if (index > HPACK_STATIC_COUNT)
        return decode_entry(scan, index - HPACK_STATIC_COUNT - 1);
    if (!scan->list->is_too_large)
        hpack_emit(scan->list, &hpack_static[index]);
    return true;
}

/* The changes of the table's size, which stand at the beginning of a block only: up to two, if a
 * smaller size lay between the last block and this one (§4.2). */
static bool take_sizes(struct hpack_scan *scan) {
    struct hpack_decoder *decoder = scan->decoder;
    for (unsigned count = 0; scan->at < scan->end && (*scan->at & 0xe0) == 0x20; count++) {
        uint32_t size;
        if (count == RESIZES_MOST || !hpack_take_number(scan, 0x1f, &size) || size > decoder->limit)
            return false;
        decoder->capacity = size;
        decoder->must_resize = false;
        shrink_to(decoder, size);
    }
    return !decoder->must_resize;
}

static inline bool decode_field(struct hpack_scan *scan) {
    unsigned char byte = *scan->at;
    if (byte & 0x80)
        return decode_indexed(scan);
    if (byte & 0x40)
        return decode_literal(scan, 0x3f, true);
    return !(byte & 0x20) && decode_literal(scan, 0x0f, false);
}

enum hpack_result hpack_decode(struct hpack_decoder *decoder, struct slice block,
                               struct hpack_list *list) {
    const unsigned char *bytes = (const unsigned char *)block.base;
    struct hpack_scan scan = {bytes, bytes + block.length, decoder, list, 0, 0};
    ASSERT(list->text_room >= decoder->limit);
    list->count = 0;
    list->text_used = list->size = 0;
    list->is_too_large = false;
    /* Twice what the block itself can become, and the table sixteen times over. */
    scan.work_most = 4 * block.length + 16 * (size_t)decoder->limit;
    if (!take_sizes(&scan))
        return HPACK_BAD;
    while (scan.at < scan.end) {
        if (!decode_field(&scan))
            return HPACK_BAD;
        if (scan.work > scan.work_most)
            return HPACK_TOO_MUCH;
    }
    return HPACK_GOOD;
}
