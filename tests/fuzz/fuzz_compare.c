/* Heads, as Retort and as llhttp read them: no difference that is not known and explained. */
#include "base/assert.h"
#include "compare.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct comparison comparison;
    const struct difference *kind;
    struct slice head = slice_make((const char *)data, size);
    if (compare_heads(&comparison, head, &kind))
        return 0;
    fprintf(stderr, "the %s differs and nothing explains it:\n%.*s\n", comparison.what,
            SLICE_PRINT(head));
    abort();
}
