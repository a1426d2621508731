#include "adapt/coding.h"

#include "part.h"

/* NULL: no part can undo it. */
static const struct coding *coding_find(struct slice name) {
    PARTS_FOR_EACH (number, codings)
        for (const struct coding *one = part_table[number]->codings; one->name.length > 0; one++)
            if (slice_equal_nocase(one->name, name))
                return one;
    return NULL;
}

int coding_list(struct slice value, const struct coding *found[CODING_LAYERS_MAX]) {
    struct slice name;
    int count = 0;
    while (slice_next_element(&value, &name)) {
        if (slice_equal_nocase(name, SLICE("identity")))
            continue;
        const struct coding *coding = coding_find(name);
        if (coding == NULL || count == CODING_LAYERS_MAX)
            return CODING_UNKNOWN;
        found[count++] = coding;
    }
    return count;
}
