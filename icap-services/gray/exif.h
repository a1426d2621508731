/*
 * The orientation of a photo: the only thing in its EXIF data that changes how it looks.
 *
 *     unsigned orientation = exif_orientation(bytes);       1..8; 1 when the data does not say
 *     struct slice exif = exif_minimal(orientation, room);  EXIF data with the orientation alone
 *     struct slice exif = exif_stripped(bytes, room);       as exif_minimal of the orientation in
 *                                                           `bytes`; empty if it is upright
 *     if (orientation >= EXIF_TURNED)                       shown on its side
 *
 * `bytes` are the TIFF structure behind "Exif\0\0". Threads: pure.
 */
#ifndef RETORT_GRAY_EXIF_H
#define RETORT_GRAY_EXIF_H

#include "base/slice.h"

enum { EXIF_UPRIGHT = 1, EXIF_TURNED = 5, EXIF_MINIMAL = 26 };

unsigned exif_orientation(struct slice bytes);
struct slice exif_minimal(unsigned orientation, char room[EXIF_MINIMAL]);
struct slice exif_stripped(struct slice bytes, char room[EXIF_MINIMAL]);

#endif
