/*
 * Tells the kind of an image, by its first bytes or by its content type.
 *
 *     image_type_of_bytes(body)                   IMAGE_JPEG, ..., IMAGE_UNKNOWN, or
 *                                                 IMAGE_TOO_SHORT when more bytes could still tell
 *     image_type_of_media(SLICE("image/gif"))     IMAGE_GIF
 *     image_type_media(IMAGE_GIF)                 "image/gif"
 *     image_type_sniffed(body)                    as image_type_of_bytes, for a body without a
 *                                                 content type: only kinds that browsers recognise,
 *                                                 and by more than two letters
 *
 * Threads: pure.
 */
#ifndef RETORT_GRAY_IMAGE_TYPE_H
#define RETORT_GRAY_IMAGE_TYPE_H

#include "base/slice.h"

enum { IMAGE_SIGNATURE = 18 }; /* bytes that tell the type for certain */

enum image_type {
    IMAGE_UNKNOWN,
    IMAGE_TOO_SHORT,
    IMAGE_JPEG,
    IMAGE_GIF,
    IMAGE_PNG,
    IMAGE_BMP,
    IMAGE_PPM,
    IMAGE_TIFF,
    IMAGE_WEBP,
};

enum image_type image_type_of_bytes(struct slice bytes);
enum image_type image_type_of_media(struct slice type);
struct slice image_type_media(enum image_type type);
enum image_type image_type_sniffed(struct slice bytes);

#endif
