#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Units from large to small. The first spelling of a factor is the one that is written. */
static const struct unit sizes[] = {{"GB", 1 << 30}, {"GiB", 1 << 30}, {"G", 1 << 30},
                                    {"MB", 1 << 20}, {"MiB", 1 << 20}, {"M", 1 << 20},
                                    {"KB", 1 << 10}, {"KiB", 1 << 10}, {"K", 1 << 10},
                                    {"B", 1},        {NULL, 0}};
static const struct unit times[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                    {"s", 1000},     {"ms", 1},      {NULL, 0}};

static bool units_read(struct slice text, const struct unit *units, uint64_t bare,
                       uint64_t *value) {
    size_t digits = 0;
    while (digits < text.length && text.base[digits] >= '0' && text.base[digits] <= '9')
        digits++;
    struct slice unit = slice_trim(slice_make(text.base + digits, text.length - digits));
    uint64_t number, factor = bare, product;
    if (!slice_to_uint64(slice_make(text.base, digits), &number))
        return false;
    while (unit.length > 0 && units->name != NULL &&
           !slice_equal_nocase(unit, slice_from(units->name)))
        units++;
    if (unit.length > 0)
        factor = units->factor; /* 0: there is no such unit */
    if ((factor == 0 && (unit.length > 0 || number > 0)) ||
        __builtin_mul_overflow(number, factor, &product))
        return false;
    *value = product;
    return true;
}

bool units_read_size(struct slice text, uint64_t *bytes) {
    return units_read(text, sizes, 1, bytes);
}

bool units_read_time(struct slice text, uint64_t bare, uint64_t *milliseconds) {
    return units_read(text, times, bare, milliseconds);
}

static char *units_write(char *text, const struct unit *units, uint64_t value) {
    while (value % units->factor != 0)
        units++;
    snprintf(text, UNITS_TEXT, "%" PRIu64 "%s", value / units->factor,
             value == 0 ? "" : units->name);
    return text;
}

char *units_write_size(char text[UNITS_TEXT], uint64_t bytes) {
    return units_write(text, sizes, bytes);
}

char *units_write_time(char text[UNITS_TEXT], uint64_t milliseconds) {
    return units_write(text, times, milliseconds);
}

char *units_show_size(char text[UNITS_TEXT], uint64_t bytes) {
    static const char *const names[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    unsigned unit = 0;
    for (; value >= 1024; unit++)
        value /= 1024;
    snprintf(text, UNITS_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", value, names[unit]);
    return text;
}

char *units_show_time(char text[UNITS_TEXT], uint64_t seconds) {
    static const struct unit steps[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
    unsigned i = 0;
    while (i < 3 && seconds < steps[i].factor)
        i++;
    int length =
        snprintf(text, UNITS_TEXT, "%" PRIu64 "%s", seconds / steps[i].factor, steps[i].name);
    if (i < 3)
        snprintf(text + length, UNITS_TEXT - (size_t)length, " %" PRIu64 "%s",
                 seconds % steps[i].factor / steps[i + 1].factor, steps[i + 1].name);
    return text;
}
