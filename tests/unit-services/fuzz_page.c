/* Pages: the place found must not depend on how the page is cut, and little may be held back. */
#include "inject/scanner.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long place_of(const char *text, size_t length, size_t step) {
    struct scanner scanner;
    size_t total = 0;
    scanner_init(&scanner, SCANNER_HEAD_END);
    while (total < length && !scanner.found) {
        size_t piece = length - total < step ? length - total : step;
        total += scanner_scan(&scanner, slice_make(text + total, piece));
        if (scanner.pending > SCANNER_PENDING_MAX || scanner.pending > total)
            abort();
    }
    return scanner.found ? (long)(total - scanner.pending) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    long whole = place_of((const char *)data, size, size + 1);
    for (size_t step = 1; step < 6; step++)
        if (place_of((const char *)data, size, step) != whole)
            abort();
    return 0;
}
