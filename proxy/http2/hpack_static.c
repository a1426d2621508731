#include "http2/hpack_static.h"

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

/* The fields that belong to a connection, and that the static table may lack. */
static const enum http_name of_connections[] = {
    HTTP_CONNECTION, HTTP_KEEP_ALIVE, HTTP_PROXY_CONNECTION,
    HTTP_TE,         HTTP_UPGRADE,    HTTP_TRANSFER_ENCODING,
};

enum { STATIC_SLOTS = 256 };

/* What is found in a hash table of names; a constructor fills it before main(). Length 0: an empty
 * slot. A name whose slot is taken is in the next free one. */
static struct static_slot {
    struct slice name; /* as it is mostly written in HTTP/1.1: equal bytes are compared faster */
    unsigned index;
} static_slots[STATIC_SLOTS];

static uint8_t index_of_id[HTTP_NAME_COUNT];

/* Bit 0x20 makes letters lower-case. These factors give each of the names a slot of its own. */
static inline unsigned hash_static_name(struct slice name) {
    const unsigned char *text = (const unsigned char *)name.base;
    unsigned first = text[0] | 0x20u, middle = text[name.length / 2] | 0x20u,
             last = text[name.length - 1] | 0x20u;
    return ((unsigned)name.length * 221 + first * 63 + middle * 193 + last * 133) % STATIC_SLOTS;
}

static void add_static_name(struct slice name, unsigned index) {
    unsigned at = hash_static_name(name);
    while (static_slots[at].name.length > 0) {
        if (slice_equal_nocase(static_slots[at].name, name))
            return;
        at = (at + 1) % STATIC_SLOTS;
    }
    static_slots[at] = (struct static_slot){name, index};
}

__attribute__((constructor)) static void fill_static_slots(void) {
    for (unsigned i = 0; i < sizeof of_connections / sizeof of_connections[0]; i++) {
        index_of_id[of_connections[i]] = HPACK_NOT_SENT;
        add_static_name(http_name_text(of_connections[i]), HPACK_NOT_SENT);
    }
    for (unsigned i = 1; i <= HPACK_STATIC_COUNT; i++) {
        const struct hpack_field *field = &hpack_static[i];
        enum http_name id = field->id;
        if (id != HTTP_OTHER && index_of_id[id] == 0)
            index_of_id[id] = (uint8_t)i;
        if (field->pseudo == HPACK_NONE)
            add_static_name(id != HTTP_OTHER ? http_name_text(id) : field->name, i);
    }
}

unsigned hpack_static_index(struct slice name) {
    if (name.length == 0)
        return 0;
    unsigned at = hash_static_name(name);
    for (; static_slots[at].name.length > 0; at = (at + 1) % STATIC_SLOTS)
        if (slice_equal_nocase(static_slots[at].name, name))
            return static_slots[at].index;
    return 0;
}

unsigned hpack_static_index_of(enum http_name id) {
    return index_of_id[id];
}
