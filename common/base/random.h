/*
 * Random bytes from the kernel that nobody can predict.
 *
 *     unsigned char secret[32];
 *     random_fill(secret, sizeof secret);
 *
 * Threads: any. Errors: when the kernel gives no random numbers, as before Linux 3.17, the process
 * ends with a message, because nothing else would be safe.
 */
#ifndef RETORT_BASE_RANDOM_H
#define RETORT_BASE_RANDOM_H

#include <stddef.h>

void random_fill(void *bytes, size_t length);

#endif
