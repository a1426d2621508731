/* Images as a stranger may send them: whatever the bytes, the code must come back, and what it
 * calls gray must be a picture again. */
#include "gray/bmp_gray.h"
#include "gray/gif_gray.h"
#include "gray/jpeg_gray.h"
#include "gray/picture_cost.h"
#include "gray/png_gray.h"
#include "gray/tiff.h"
#include "gray/webp_gray.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Twice, since what is gray must stay as it is. */
static void try_converter(enum picture_result (*convert)(const unsigned char *, size_t,
                                                         const struct picture_options *,
                                                         struct picture_output *),
                          const uint8_t *data, size_t size, bool exact) {
    const struct picture_options options = {.max_pixels = 1 << 18, .larger = true};
    const struct picture_options small = {
        .max_pixels = 1 << 18, .width = 7, .quality = 50, .strip = true, .larger = true};
    struct picture_output output, again;
    if (convert(data, size, &small, &output) == PICTURE_DONE)
        free(output.bytes);
    if (convert(data, size, &options, &output) != PICTURE_DONE)
        return;
    enum picture_result result = convert(output.bytes, output.length, &options, &again);
    if (result == PICTURE_BAD || (exact && result != PICTURE_UNCHANGED))
        abort();
    if (result == PICTURE_DONE)
        free(again.bytes);
    free(output.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct picture_options plain = {0};
    if (picture_cost_of(slice_make((const char *)data, size), &plain).work < size)
        abort();
    tiff_refusal(slice_make((const char *)data, size));
    try_converter(bmp_gray, data, size, false);
    try_converter(gif_gray, data, size, true);
    try_converter(jpeg_gray, data, size, true);
    try_converter(png_gray, data, size, true);
    try_converter(webp_gray, data, size, false);
    return 0;
}
