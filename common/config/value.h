/*
 * Values of options: conversion from text to C and back, by the type in the option's row.
 *
 *     struct settings settings = {0};
 *     char error[200];
 *     const struct option *memory = options_find(&table, "cache", "memory");
 *     if (!value_set(memory, &settings, "512MB", error, sizeof error)) ...   "is not a size: ..."
 *     value_release(memory, &settings);
 *
 * value_set of a list option appends one element.
 *
 * Threads: values.
 */
#ifndef RETORT_CONFIG_VALUE_H
#define RETORT_CONFIG_VALUE_H

#include "base/units.h"
#include "config/option.h"

bool value_set(const struct option *option, void *destination, const char *text, char *error,
               size_t error_size);
/* Is this one value of the option by itself? False with what is wrong: "is not a size". */
bool value_check(const struct option *option, const char *text, char *error, size_t error_size);
/* Sets the default if the row has one. A malformed default is a bug in the table. */
void value_set_fallback(const struct option *option, void *destination);
/* The size of a value in its destination; for lists, of the pointer. */
size_t value_size(const struct option *option);
/* Frees what the value owns and leaves nothing behind. */
void value_release(const struct option *option, void *destination);
/* A destination with room for this value alone. The caller frees it, after value_release. */
void *value_lone_destination(const struct option *option);

/* Writes a least or most value of the option as it stands in the file. */
void value_write_bound(const struct option *option, double bound, char text[UNITS_TEXT]);

#endif
