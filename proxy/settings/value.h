/*
 * Values of options: conversion from text to C and back, by the type in the option's row.
 *
 *     struct settings settings = {0};
 *     char error[200];
 *     const struct option *memory = options_find("cache", "memory");
 *     if (!value_set(memory, &settings, "512MB", error, sizeof error)) ...   "is not a size: ..."
 *     json_t *json = value_to_json(memory, &settings);                        "512MB"
 *     value_release(memory, &settings);
 *
 * value_set of a list option appends one element.
 *
 * Threads: values.
 */
#ifndef RETORT_SETTINGS_VALUE_H
#define RETORT_SETTINGS_VALUE_H

#include "settings/options.h"

#include <jansson.h>

bool value_set(const struct option *option, void *destination, const char *text, char *error,
               size_t error_size);
/* Is this one value of the option by itself? False with what is wrong: "is not a size". */
bool value_check(const struct option *option, const char *text, char *error, size_t error_size);
/* The JSON of a value as it is written: of each text, or of the default if `texts` is NULL. Null:
 * there is no default, or a text is wrong. */
json_t *value_text_to_json(const struct option *option, char *const *texts);
/* Sets the default if the row has one. A malformed default is a bug in the table. */
void value_set_fallback(const struct option *option, void *destination);
/* The size of a value in its destination; for lists, of the pointer. */
size_t value_size(const struct option *option);
/* Frees what the value owns and leaves nothing behind. */
void value_release(const struct option *option, void *destination);
/* Sizes and times become strings as in the file ("512MB", "5s"). */
json_t *value_to_json(const struct option *option, const void *source);

/* Parses "0", or a number with its unit. */
bool value_parse_time(const char *text, uint64_t *milliseconds);
/* Writes a value as it stands in the file, for tests and messages. */
void value_format_size(uint64_t bytes, char *out, size_t capacity);
void value_format_time(uint64_t milliseconds, char *out, size_t capacity);

#endif
