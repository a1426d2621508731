/*
 * The words of a row in a table of options (config/option.h), for the core and for parts:
 *
 *     {ONE("admin", struct event_settings, consumers), .name = "event_consumers", COUNT(0, 32), DEFAULT("8"),
 *      DOC "Sets how many may read the event stream at a time.", .example = "16"},
 *
 * Units: sizes in bytes, times in milliseconds. Threads: constants.
 */
#ifndef RETORT_SETTINGS_OPTION_ROWS_H
#define RETORT_SETTINGS_OPTION_ROWS_H

#include "config/option.h"

#define KB     1024.0
#define MB     (1024.0 * KB)
#define GB     (1024.0 * MB)
#define SECOND 1000.0
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* The range of timeouts that an operator may set. A longer one is probably a wrong unit. */
#define TIMEOUT_MIN 1.0
#define TIMEOUT_MAX (1 * DAY)

/* The section, and the value in its destination. */
#define ONE(name, type, member) .section = name, .at = offsetof(type, member)

/* The type and range of a value. */
#define BOOL               .type = OPTION_BOOL
#define COUNT(from, to)    .type = OPTION_COUNT, .least = from, .most = to
#define SIZE_OF(from, to)  .type = OPTION_SIZE, .least = from, .most = to
#define TIME_OF(from, to)  .type = OPTION_TIME, .least = from, .most = to
#define TIMEOUT            TIME_OF(TIMEOUT_MIN, TIMEOUT_MAX)
#define FLOAT_OF(from, to) .type = OPTION_FLOAT, .least = from, .most = to
#define STRING             .type = OPTION_STRING
#define STRINGS            .type = OPTION_STRINGS
#define WORD(list)         .type = OPTION_WORD, .words = list
#define ELEMENTS(kind)     .type = OPTION_ELEMENTS, .elements = &kind
#define DEFAULT(text)      .fallback = text
#define AT_RUN_TIME        .change = OPTION_AT_RUN_TIME
#define AT_START           .change = OPTION_AT_START
#define BY_FILE            .change = OPTION_BY_FILE
#define BY_FILE_AT_START   .change = OPTION_BY_FILE_AT_START
#define DOC                .documentation =

#endif
