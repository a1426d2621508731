/*
 * Hours of the week, as classes name them: days, a time of day, or both.
 *
 *     struct class_hours hours;
 *     class_hours_clear(&hours);
 *     class_hours_add(&hours, "mon-fri 08:00-17:30", error, sizeof error);
 *     class_hours_add(&hours, "sat,sun", ...);           whole days
 *     class_hours_add(&hours, "fri 22:00-06:00", ...);   until six on Saturday
 *     if (class_hours_have(&hours, wall)) ...
 *
 * Times are those of the machine's time zone. The end does not belong to the hours; 24:00 is the
 * end of the day. When clocks are changed, the hours follow the clock on the wall.
 *
 * Threads: read-only once made. Each thread remembers the minute that it has looked up last, so
 * that a question seldom asks for the time zone.
 */
#ifndef RETORT_MATCH_CLASS_HOURS_H
#define RETORT_MATCH_CLASS_HOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MINUTES_OF_DAY = 24 * 60, MINUTES_OF_WEEK = 7 * MINUTES_OF_DAY };

struct class_hours {
    uint64_t minutes[(MINUTES_OF_WEEK + 63) / 64]; /* a bit each, from Sunday 00:00 */
};

void class_hours_clear(struct class_hours *hours);
/* False, with what is wrong in `error`; the hours are then as before. */
bool class_hours_add(struct class_hours *hours, const char *text, char *error, size_t error_size);
/* `wall`: seconds since 1970; 0: not known, and no hours have it. */
bool class_hours_have(const struct class_hours *hours, int64_t wall);
bool class_hours_are_all(const struct class_hours *hours);

#endif
