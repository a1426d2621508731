/* Pages: the place found must not depend on how the page is cut, and little may be held back. */
#include "inject/scanner.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long place_of(enum scanner_place place, enum scanner_page page, const char *text,
                     size_t length, size_t step) {
    struct scanner scanner;
    size_t total = 0;
    scanner_init(&scanner, place, page);
    while (total < length && !scanner.found && !scanner.hopeless) {
        size_t piece = length - total < step ? length - total : step;
        total += scanner_scan(&scanner, slice_make(text + total, piece));
        if (scanner.pending > SCANNER_PENDING_MAX || scanner.pending > total)
            abort();
    }
    if (!scanner.hopeless)
        scanner_end(&scanner);
    return scanner.found ? (long)(total - scanner.pending) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    for (enum scanner_place place = SCANNER_HEAD_END; place <= SCANNER_BODY_END; place++)
        for (enum scanner_page page = SCANNER_DOCUMENT; page <= SCANNER_XML; page++) {
            long whole = place_of(place, page, text, size, size + 1);
            for (size_t step = 1; step < 6; step++)
                if (place_of(place, page, text, size, step) != whole)
                    abort();
        }
    return 0;
}
