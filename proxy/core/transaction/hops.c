#include "transaction/hops.h"

bool hops_contain(const struct http_head *head, struct slice name) {
    for (const struct http_field *via = http_head_find(head, HTTP_VIA); via != NULL;
         via = http_head_find_next(head, HTTP_VIA, via)) {
        struct slice rest = via->value, element;
        while (slice_next_element(&rest, &element)) {
            const char *blank = memchr(element.base, ' ', element.length);
            if (blank == NULL)
                continue;
            struct slice by =
                slice_make(blank + 1, element.length - (size_t)(blank + 1 - element.base));
            const char *end = by.length > 0 ? memchr(by.base, ' ', by.length) : NULL;
            if (end != NULL)
                by.length = (size_t)(end - by.base);
            if (slice_equal_nocase(by, name))
                return true;
        }
    }
    return false;
}

bool hops_count_down(struct http_head *request, struct arena *arena) {
    char digits[SLICE_DIGITS];
    uint64_t left;
    if (!slice_to_uint64(http_head_value(request, HTTP_MAX_FORWARDS), &left) || left == 0)
        return false;
    http_head_set(request, HTTP_MAX_FORWARDS,
                  arena_slice(arena, slice_of_number(digits, left - 1)));
    return true;
}

void hops_add(struct http_head *head, struct slice version, struct slice name,
              struct arena *arena) {
    struct slice via = http_head_joined_value(head, HTTP_VIA, arena);
    http_head_set(head, HTTP_VIA,
                  arena_concat(arena, via, via.length > 0 ? SLICE(", ") : SLICE(""), version,
                               SLICE(" "), name));
}

void hops_end(struct http_head *request) {
    if (!http_head_has(request, HTTP_CONNECTION) || !http_head_names_fields(request))
        return;
    struct slice upgrade = http_head_value(request, HTTP_UPGRADE);
    http_head_remove_hop_by_hop(request);
    if (upgrade.base == NULL)
        return;
    http_head_set(request, HTTP_UPGRADE, upgrade);
    http_head_set(request, HTTP_CONNECTION, SLICE("Upgrade"));
}
