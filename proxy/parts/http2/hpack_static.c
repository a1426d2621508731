#include "http2/hpack_static.h"

#include "base/assert.h"
#include "http2/hpack_encode.h"

const struct hpack_field hpack_static[HPACK_STATIC_COUNT + 1] = {
#define HPACK_STATIC(index, name_text, value_text, pseudo_id, name_id)                             \
    [index] = {                                                                                    \
        .name = {name_text, sizeof(name_text) - 1},                                                \
        .value = {value_text, sizeof(value_text) - 1},                                             \
        .id = HTTP_##name_id,                                                                      \
        .pseudo = HPACK_##pseudo_id,                                                               \
        .is_clean = true,                                                                          \
    },
#include "http2/hpack_static.def"
#undef HPACK_STATIC
};

/* The fields that belong to a connection, most of which the table lacks. */
static const enum http_name of_connections[] = {
    HTTP_CONNECTION, HTTP_KEEP_ALIVE, HTTP_PROXY_CONNECTION,
    HTTP_TE,         HTTP_UPGRADE,    HTTP_TRANSFER_ENCODING,
};

/* A constructor fills both, because C can't hash names while compiling. */
struct hpack_static_name hpack_static_names[HPACK_STATIC_SLOTS];
static uint8_t index_of_id[HTTP_NAME_COUNT];

static bool is_static_name(const struct hpack_static_name *slot, struct slice name) {
    size_t part = name.length < HPACK_STATIC_FRONT ? name.length : HPACK_STATIC_FRONT;
    const char *end = name.base + name.length;
    return slot->length == name.length &&
           slice_equal_nocase(slice_make(slot->front, part), slice_make(name.base, part)) &&
           slice_equal_nocase(slice_make(slot->back, part), slice_make(end - part, part));
}

static void add_static_name(struct slice name, unsigned index) {
    struct hpack_static_name *slot =
        &hpack_static_names[hpack_static_slot(name.base, name.length) - hpack_static_names];
    size_t part = name.length < HPACK_STATIC_FRONT ? name.length : HPACK_STATIC_FRONT;
    if (slot->length > 0) {
        ASSERT(is_static_name(slot, name));
        return;
    }
    ASSERT(name.length <= 2 * HPACK_STATIC_FRONT);
    slice_put_lower(slot->front, slice_make(name.base, part));
    slice_put_lower(slot->back, slice_make(name.base + name.length - part, part));
    slot->length = (uint8_t)name.length;
    slot->index = (uint8_t)index;
    slot->front_bits = (uint16_t)((1u << part) - 1);
    if (index != HPACK_NOT_SENT)
        slot->literal_length =
            (uint8_t)(hpack_put_literal_name(slot->literal, index, name) - slot->literal);
}

__attribute__((constructor)) static void fill_static_names(void) {
    for (unsigned i = 0; i < sizeof of_connections / sizeof of_connections[0]; i++) {
        index_of_id[of_connections[i]] = HPACK_NOT_SENT;
        add_static_name(http_name_text(of_connections[i]), HPACK_NOT_SENT);
    }
    for (unsigned i = 1; i <= HPACK_STATIC_COUNT; i++) {
        const struct hpack_field *field = &hpack_static[i];
        if (field->id != HTTP_OTHER && index_of_id[field->id] == 0)
            index_of_id[field->id] = (uint8_t)i;
        if (field->pseudo == HPACK_NONE)
            add_static_name(field->name, i);
    }
}

unsigned hpack_static_index(struct slice name) {
    if (name.length == 0)
        return 0;
    const struct hpack_static_name *slot = hpack_static_slot(name.base, name.length);
    return is_static_name(slot, name) ? slot->index : 0;
}

unsigned hpack_static_index_of(enum http_name id) {
    return index_of_id[id];
}
