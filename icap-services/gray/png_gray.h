/*
 * Makes a PNG gray, with libpng. In a picture with a palette only the palette becomes gray, and
 * every other byte stays, also in an animation. RGB becomes gray, and RGBA becomes gray with alpha,
 * in the same depth; in linear light if the file tells its gamma. Interlacing, transparency, gamma,
 * resolution and texts stay. An animation in RGB or RGBA stays as it is.
 *
 *     png_gray(bytes, length, &options, &output)          picture.h
 *
 * Threads: none shared.
 */
#ifndef RETORT_GRAY_PNG_GRAY_H
#define RETORT_GRAY_PNG_GRAY_H

#include "gray/picture.h"

#include <stdint.h>

enum picture_result png_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output);

/*
 * Luma in linear light. The samples become linear by the file's gamma, are added with the weights
 * of BT.601, and the sum becomes a sample again. A neutral colour stays exactly what it is. The
 * luma lies between the least and the largest of the three samples, however dark they are.
 *
 *     struct gamma_luma *luma = gamma_luma_create(gamma, 255);      NULL: out of memory
 *     unsigned sample = gamma_luma_of(luma, red, green, blue);      each 0..255
 *     gamma_luma_free(&luma);
 *
 * `gamma` is in hundred-thousandths, as in a gAMA chunk (PNG, third edition, 11.3.2.2): 45455 means
 * that a sample is the light to the power of 1/2.2. Threads: read-only once made.
 */

struct gamma_luma;

/* `most`: the largest sample, 255 or 65535. */
struct gamma_luma *gamma_luma_create(uint32_t gamma, unsigned most);
unsigned gamma_luma_of(const struct gamma_luma *luma, unsigned red, unsigned green, unsigned blue);
void gamma_luma_free(struct gamma_luma **lumap);

#endif
