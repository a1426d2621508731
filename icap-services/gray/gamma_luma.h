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
#ifndef RETORT_GRAY_GAMMA_LUMA_H
#define RETORT_GRAY_GAMMA_LUMA_H

#include <stdint.h>

struct gamma_luma;

/* `most`: the largest sample, 255 or 65535. */
struct gamma_luma *gamma_luma_create(uint32_t gamma, unsigned most);
unsigned gamma_luma_of(const struct gamma_luma *luma, unsigned red, unsigned green, unsigned blue);
void gamma_luma_free(struct gamma_luma **lumap);

#endif
