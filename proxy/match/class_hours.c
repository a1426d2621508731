#include "match/class_hours.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const char form[] =
    "is not a time: write days, a time of day, or both, as in \"mon-fri 08:00-17:30\", \"sat,sun\" "
    "or \"22:00-06:00\"";

void class_hours_clear(struct class_hours *hours) {
    memset(hours, 0, sizeof *hours);
}

static const char *hours_skip_blanks(const char *text) {
    return text + strspn(text, " \t");
}

/* Moves behind the name of a day; -1: there is none. */
static int take_day(const char **text) {
    for (int day = 0; day < 7; day++)
        if (strncasecmp(*text, day_names[day], 3) == 0) {
            *text += 3;
            return day;
        }
    return -1;
}

/* "mon", "mon-fri", "sat,sun": the days as bits. */
static bool take_days(const char **text, unsigned *days) {
    do {
        int from = take_day(text), to = from;
        if (from < 0)
            return false;
        if (**text == '-') {
            ++*text;
            to = take_day(text);
        }
        if (to < 0)
            return false;
        for (int day = from;; day = (day + 1) % 7) {
            *days |= 1u << day;
            if (day == to)
                break;
        }
    } while (**text == ',' && *++*text != '\0');
    return (*text)[-1] != ',';
}

static bool hours_is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* "08:30": minutes of the day, at most 24:00. */
static bool hours_take_time(const char **text, unsigned *minutes) {
    const char *t = *text;
    if (!hours_is_digit(t[0]) || !hours_is_digit(t[1]) || t[2] != ':' || !hours_is_digit(t[3]) ||
        !hours_is_digit(t[4]))
        return false;
    unsigned hour = (unsigned)(t[0] - '0') * 10 + (unsigned)(t[1] - '0');
    unsigned minute = (unsigned)(t[3] - '0') * 10 + (unsigned)(t[4] - '0');
    *minutes = hour * 60 + minute;
    *text += strlen("08:30");
    return minute < 60 && *minutes <= MINUTES_OF_DAY;
}

static bool hours_take_times(const char **text, unsigned *from, unsigned *to) {
    return hours_take_time(text, from) && *(*text)++ == '-' && hours_take_time(text, to);
}

static void set_minutes(struct class_hours *hours, unsigned day, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        unsigned minute = (day * MINUTES_OF_DAY + i) % MINUTES_OF_WEEK;
        hours->minutes[minute / 64] |= UINT64_C(1) << minute % 64;
    }
}

static bool hours_fail(char *error, size_t error_size, const char *reason) {
    snprintf(error, error_size, "%s", reason);
    return false;
}

bool class_hours_add(struct class_hours *hours, const char *text, char *error, size_t error_size) {
    enum { ALL_DAYS = 0x7f };
    unsigned days = 0, from = 0, to = MINUTES_OF_DAY;
    const char *at = hours_skip_blanks(text);
    if (!hours_is_digit(*at) && !take_days(&at, &days))
        return hours_fail(error, error_size, form);
    bool any_days = days != 0;
    const char *times = hours_skip_blanks(at);
    if (*times != '\0' && ((any_days && times == at) || !hours_take_times(&times, &from, &to)))
        return hours_fail(error, error_size, form);
    if (*hours_skip_blanks(times) != '\0' || (!any_days && times == at))
        return hours_fail(error, error_size, form);
    if (from == to)
        return hours_fail(error, error_size,
                          "is a time that never comes: it ends when it begins; the whole day is "
                          "00:00-24:00");
    for (unsigned day = 0; day < 7; day++)
        if (((any_days ? days : ALL_DAYS) >> day & 1) != 0)
            set_minutes(hours, day, from, to > from ? to : to + MINUTES_OF_DAY);
    return true;
}

/* The minute of the week in the machine's time zone; -1: there is no such time. */
static int minute_of_week(int64_t wall) {
    static _Thread_local int64_t last_minute = -1; /* since 1970 */
    static _Thread_local int last;
    if (wall / 60 != last_minute) {
        time_t seconds = (time_t)wall;
        struct tm local;
        last = localtime_r(&seconds, &local) == NULL
                   ? -1
                   : local.tm_wday * MINUTES_OF_DAY + local.tm_hour * 60 + local.tm_min;
        last_minute = wall / 60;
    }
    return last;
}

bool class_hours_have(const struct class_hours *hours, int64_t wall) {
    int minute = wall <= 0 ? -1 : minute_of_week(wall);
    return minute >= 0 && (hours->minutes[minute / 64] >> minute % 64 & 1) != 0;
}

bool class_hours_are_all(const struct class_hours *hours) {
    for (unsigned minute = 0; minute < MINUTES_OF_WEEK; minute++)
        if ((hours->minutes[minute / 64] >> minute % 64 & 1) == 0)
            return false;
    return true;
}
