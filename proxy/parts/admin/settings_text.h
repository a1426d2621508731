/*
 * The settings in use as a configuration file, with defaults: it loads to the same settings.
 *
 *     settings_text_write(out, settings);       what GET /v1/settings answers
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_SETTINGS_TEXT_H
#define RETORT_ADMIN_SETTINGS_TEXT_H

#include <jansson.h>
#include <stdio.h>

void settings_text_write(FILE *out, const json_t *settings);

#endif
