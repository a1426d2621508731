#include "service/arguments.h"

/* Takes the text before the next `end` off the front of *rest. */
static struct slice take_until(struct slice *rest, char end) {
    const char *found = memchr(rest->base, end, rest->length);
    size_t length = found == NULL ? rest->length : (size_t)(found - rest->base);
    struct slice taken = slice_make(rest->base, length);
    size_t used = found == NULL ? length : length + 1;
    *rest = slice_make(rest->base + used, rest->length - used);
    return taken;
}

bool service_argument(struct slice arguments, struct slice name, struct slice *value) {
    while (arguments.length > 0) {
        struct slice rest = take_until(&arguments, '&');
        if (rest.length == 0 || !slice_equal(take_until(&rest, '='), name))
            continue;
        *value = rest;
        return true;
    }
    return false;
}

bool service_argument_number(struct slice arguments, struct slice name, uint64_t low, uint64_t high,
                             uint64_t *value) {
    struct slice text;
    uint64_t number;
    if (!service_argument(arguments, name, &text) || !slice_to_uint64(text, &number) ||
        number < low || number > high)
        return false;
    *value = number;
    return true;
}
