/*
 * Sizes and times as text: read from configurations and commands, and written for people.
 *
 *     uint64_t bytes, milliseconds;
 *     if (!units_read_size(SLICE("64K"), &bytes)) ...                     65536
 *     if (!units_read_time(SLICE("5m"), 0, &milliseconds)) ...            300000
 *     char text[UNITS_TEXT];
 *     puts(units_write_size(text, 65536));                                "64KB"
 *     puts(units_show_size(text, 1500000));                               "1.4 MB"
 *     puts(units_show_time(text, 97200));                                 "1d 3h"
 *
 * Units of sizes are powers of 1024, whatever their spelling: "64K", "64KB" and "64KiB" are the
 * same. What is written says KB, MB and GB, as configurations do. Upper and lower case are the same, and blanks may
 * stand between a number and its unit.
 *
 * Threads: pure. Errors: a reader returns false, and changes nothing, for a text that has another
 * form, or a number that is too large.
 */
#ifndef RETORT_BASE_UNITS_H
#define RETORT_BASE_UNITS_H

#include "base/slice.h"

enum { UNITS_TEXT = 32 };

/* B, K, M and G; a number without a unit is bytes. */
bool units_read_size(struct slice text, uint64_t *bytes);
/* ms, s, m, h and d. `bare`: the milliseconds that a number without a unit counts; 0: only the
 * number 0 may have no unit. */
bool units_read_time(struct slice text, uint64_t bare, uint64_t *milliseconds);

/* Write exactly what a reader takes, in the largest unit that leaves a whole number: "512MB",
 * "1500B", "90s", "0". Return `text`. */
char *units_write_size(char text[UNITS_TEXT], uint64_t bytes);
char *units_write_time(char text[UNITS_TEXT], uint64_t milliseconds);
/* Write it rounded: "512 B", "1.4 MB"; "5s", "4m 5s", "3h 4m", "2d 3h". Return `text`. */
char *units_show_size(char text[UNITS_TEXT], uint64_t bytes);
char *units_show_time(char text[UNITS_TEXT], uint64_t seconds);

#endif
