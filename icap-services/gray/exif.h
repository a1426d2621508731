/*
 * The one thing in a photo's EXIF data that changes how it looks: its orientation.
 *
 *     unsigned orientation = exif_orientation(bytes);       1..8; 1 when it does not say
 *     struct slice exif = exif_minimal(orientation, room);  EXIF data that says that and no more
 *     struct slice exif = exif_stripped(bytes, room);       that of `bytes`; empty if it is upright
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
