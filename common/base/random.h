/*
 * Random bytes that nobody can foresee, from the kernel.
 *
 *     unsigned char secret[32];
 *     random_fill(secret, sizeof secret);
 *
 * Threads: any. Without the kernel's random numbers nothing of this is safe, so the process ends
 * with a message where it has none, as on a kernel before 3.17.
 */
#ifndef RETORT_BASE_RANDOM_H
#define RETORT_BASE_RANDOM_H

#include <stddef.h>

void random_fill(void *bytes, size_t length);

#endif
