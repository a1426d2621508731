/* Images as a stranger may send them: whatever the bytes, the code must come back, and what it
 * calls gray must be a picture again. */
#include "gray/gif_gray.h"
#include "gray/jpeg_gray.h"
#include "gray/png_info.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_gif(const uint8_t *data, size_t size) {
    unsigned char *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    if (gif_gray(bytes, size) == GIF_GRAY_DONE && gif_gray(bytes, size) != GIF_GRAY_UNCHANGED)
        abort();
    free(bytes);
}

static void try_jpeg(const uint8_t *data, size_t size) {
    struct jpeg_gray_output output, again;
    if (jpeg_gray(data, size, 1 << 18, &output) != JPEG_GRAY_DONE)
        return;
    if (jpeg_gray(output.bytes, output.length, 1 << 18, &again) != JPEG_GRAY_UNCHANGED)
        abort();
    free(output.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct png_info info;
    png_info_read(&info, slice_make((const char *)data, size));
    try_gif(data, size);
    try_jpeg(data, size);
    return 0;
}
