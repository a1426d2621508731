#include "http/date.h"

/*
 * Dates are read without case. A date that breaks the grammar is refused, because a wrong guess
 * could make a stale response fresh (RFC 9111 §4.2).
 */

struct calendar {
    unsigned year, month /* 0 to 11 */, day, hour, minute, second;
};

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char weekdays[] = "SunMonTueWedThuFriSat";

/* Three letters as a number, in lower case. */
#define LETTERS(a, b, c) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | 0x202020)
static const uint32_t month_letters[] = {
    LETTERS('j', 'a', 'n'), LETTERS('f', 'e', 'b'), LETTERS('m', 'a', 'r'), LETTERS('a', 'p', 'r'),
    LETTERS('m', 'a', 'y'), LETTERS('j', 'u', 'n'), LETTERS('j', 'u', 'l'), LETTERS('a', 'u', 'g'),
    LETTERS('s', 'e', 'p'), LETTERS('o', 'c', 't'), LETTERS('n', 'o', 'v'), LETTERS('d', 'e', 'c'),
};
static const uint32_t weekday_letters[] = {
    LETTERS('s', 'u', 'n'), LETTERS('m', 'o', 'n'), LETTERS('t', 'u', 'e'), LETTERS('w', 'e', 'd'),
    LETTERS('t', 'h', 'u'), LETTERS('f', 'r', 'i'), LETTERS('s', 'a', 't'),
};
static const struct slice full_weekdays[] = {
    {"Sunday", 6},   {"Monday", 6}, {"Tuesday", 7},  {"Wednesday", 9},
    {"Thursday", 8}, {"Friday", 6}, {"Saturday", 8},
};

/* Returns the index of the name that has these three letters, without case; -1: no name has them.
 * The bit 0x20 makes letters lower-case, and turns no other byte into a letter. */
static int place_in(const uint32_t *names, unsigned count, const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    uint32_t wanted = LETTERS(bytes[0], bytes[1], bytes[2]);
    for (unsigned i = 0; i < count; i++)
        if (names[i] == wanted)
            return (int)i;
    return -1;
}

static bool take_month(const char *at, struct calendar *c) {
    int month = place_in(month_letters, 12, at);
    c->month = (unsigned)month;
    return month >= 0;
}

static inline bool http_date_take_number(const char *at, unsigned digits, unsigned *number) {
    *number = 0;
    for (unsigned i = 0; i < digits; i++) {
        unsigned digit = (unsigned)(unsigned char)at[i] - '0';
        if (digit > 9)
            return false;
        *number = *number * 10 + digit;
    }
    return true;
}

/* "08:49:37" */
static bool take_clock(const char *at, struct calendar *c) {
    return at[2] == ':' && at[5] == ':' && http_date_take_number(at, 2, &c->hour) &&
           http_date_take_number(at + 3, 2, &c->minute) &&
           http_date_take_number(at + 6, 2, &c->second);
}

static bool is_text(const char *at, struct slice text) {
    return memcmp(at, text.base, text.length) == 0 ||
           slice_equal_nocase(slice_make(at, text.length), text);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool take_fixdate(struct slice text, struct calendar *c) {
    const char *at = text.base;
    return text.length == HTTP_DATE_LENGTH && place_in(weekday_letters, 7, at) >= 0 &&
           is_text(at + 3, SLICE(", ")) && http_date_take_number(at + 5, 2, &c->day) &&
           at[7] == ' ' && take_month(at + 8, c) && at[11] == ' ' &&
           http_date_take_number(at + 12, 4, &c->year) && at[16] == ' ' && take_clock(at + 17, c) &&
           is_text(at + 25, SLICE(" GMT"));
}

/* "Sun Nov  6 08:49:37 1994" */
static bool take_asctime(struct slice text, struct calendar *c) {
    const char *at = text.base;
    if (text.length != 24)
        return false;
    bool one_digit = at[8] == ' ';
    return place_in(weekday_letters, 7, at) >= 0 && at[3] == ' ' && take_month(at + 4, c) &&
           at[7] == ' ' && http_date_take_number(at + 8 + one_digit, 2 - one_digit, &c->day) &&
           at[10] == ' ' && take_clock(at + 11, c) && at[19] == ' ' &&
           http_date_take_number(at + 20, 4, &c->year);
}

static int64_t days_of(unsigned year, unsigned month, unsigned day);
static void year_of(int64_t days, struct calendar *c);

/* A year of two digits means the latest matching year that is at most 50 years in the future. */
static unsigned full_year(unsigned two_digits) {
    struct calendar now;
    year_of(time(NULL) / 86400, &now);
    unsigned latest = now.year + 50;
    return latest - (latest - two_digits) % 100;
}

/* "Sunday, 06-Nov-94 08:49:37 GMT" */
static bool take_rfc850(struct slice text, struct calendar *c) {
    enum { AFTER_WEEKDAY = 24 };
    if (text.length < AFTER_WEEKDAY)
        return false;
    struct slice weekday = slice_make(text.base, text.length - AFTER_WEEKDAY);
    bool known = false;
    for (unsigned i = 0; i < 7; i++)
        known |= slice_equal_nocase(weekday, full_weekdays[i]);
    const char *at = text.base + weekday.length;
    if (!known || !is_text(at, SLICE(", ")) || !http_date_take_number(at + 2, 2, &c->day) ||
        at[4] != '-' || !take_month(at + 5, c) || at[8] != '-' ||
        !http_date_take_number(at + 9, 2, &c->year) || at[11] != ' ' || !take_clock(at + 12, c) ||
        !is_text(at + 20, SLICE(" GMT")))
        return false;
    c->year = full_year(c->year);
    return true;
}

static bool is_leap(unsigned year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Does this date exist? A leap second is allowed, as in the grammar. */
static bool exists(const struct calendar *c) {
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned length = lengths[c->month] + (c->month == 1 && is_leap(c->year));
    return c->day >= 1 && c->day <= length && c->hour <= 23 && c->minute <= 59 && c->second <= 60;
}

/*
 * Days since 1 January 1970 and back. Years are counted from 1 March, so that the leap day is the
 * last of its year, in eras of 400 years, which all have the same number of days.
 */
enum { ERA_DAYS = 146097, ERA_YEARS = 400, DAYS_TO_1970 = 719468 /* from 1 March of year 0 */ };

static int64_t days_of(unsigned year, unsigned month, unsigned day) {
    int64_t y = (int64_t)year - (month < 2);
    int64_t era = (y >= 0 ? y : y - (ERA_YEARS - 1)) / ERA_YEARS;
    int64_t year_of_era = y - era * ERA_YEARS;
    int64_t day_of_year = (153 * (int64_t)((month + 10) % 12) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * ERA_DAYS + day_of_era - DAYS_TO_1970;
}

/* Sets year, month and day. */
static void year_of(int64_t days, struct calendar *c) {
    days += DAYS_TO_1970;
    int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS;
    int64_t day_of_era = days - era * ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    c->day = (unsigned)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    c->month = (unsigned)((month_from_march + 2) % 12);
    c->year = (unsigned)(era * ERA_YEARS + year_of_era + (c->month < 2));
}

bool http_date_parse(struct slice text, time_t *seconds) {
    struct calendar c;
    if (!take_fixdate(text, &c) && !take_rfc850(text, &c) && !take_asctime(text, &c))
        return false;
    if (!exists(&c))
        return false;
    *seconds = days_of(c.year, c.month, c.day) * 86400 + c.hour * 3600 + c.minute * 60 + c.second;
    return true;
}

static char *put_two(char *at, unsigned number) {
    at[0] = (char)('0' + number / 10);
    at[1] = (char)('0' + number % 10);
    return at + 2;
}

/* "08:49:37" */
static void put_clock(char *at, unsigned second_of_day) {
    at = put_two(at, second_of_day / 3600);
    *at++ = ':';
    at = put_two(at, second_of_day / 60 % 60);
    *at++ = ':';
    put_two(at, second_of_day % 60);
}

/* A time whose year does not fit in four digits becomes the nearest time whose year does. */
static int64_t http_date_clamp(int64_t seconds) {
    const int64_t earliest = -62167219200, latest = 253402300799; /* 0000-01-01, 9999-12-31 */
    return seconds < earliest ? earliest : seconds > latest ? latest : seconds;
}

void http_date_format(char *out, time_t seconds) {
    int64_t from_year_zero = http_date_clamp(seconds) + 62167219200;
    int64_t day = from_year_zero / 86400; /* 1 January of year 0 was a Saturday */
    struct calendar c;
    year_of(day - 719528, &c);
    memcpy(out, "Sun, 06 Nov 1994 08:49:37 GMT", HTTP_DATE_LENGTH + 1);
    memcpy(out, weekdays + (day + 6) % 7 * 3, 3);
    put_two(out + 5, c.day);
    memcpy(out + 8, months + (size_t)c.month * 3, 3);
    put_two(put_two(out + 12, c.year / 100), c.year % 100);
    put_clock(out + 17, (unsigned)(from_year_zero % 86400));
}
