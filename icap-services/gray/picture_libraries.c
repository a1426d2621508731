#include "gray/picture_libraries.h"

#include <gif_lib.h>
#include <png.h>
#include <stdio.h>
#include <webp/encode.h>

#include <jpeglib.h> /* wants <stdio.h> before it */

#define STRING_OF(macro)     STRING_OF_TEXT(macro)
#define STRING_OF_TEXT(text) #text

const struct version_library *picture_libraries(void) {
    static char webp[16];
    static const struct version_library list[] = {
#ifdef LIBJPEG_TURBO_VERSION
        {"libjpeg-turbo", STRING_OF(LIBJPEG_TURBO_VERSION)},
#endif
        {"libpng", PNG_LIBPNG_VER_STRING},
        {"libwebp", webp},
        {"giflib",
         STRING_OF(GIFLIB_MAJOR) "." STRING_OF(GIFLIB_MINOR) "." STRING_OF(GIFLIB_RELEASE)},
        {NULL, NULL},
    };
    int number = WebPGetEncoderVersion();
    snprintf(webp, sizeof webp, "%d.%d.%d", number >> 16 & 255, number >> 8 & 255, number & 255);
    return list;
}
