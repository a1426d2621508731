/*
 * What the admin plane answers, shown to people.
 *
 *     show_status(stdout, json);        a few lines and two tables
 *     show_origins(stdout, json);       a table for each group
 *     show_settings(stdout, json);      a configuration file that says the same, defaults included
 *
 * Threads: values.
 */
#ifndef RETORT_CTL_SHOW_H
#define RETORT_CTL_SHOW_H

#include <jansson.h>
#include <stdio.h>

void show_status(FILE *out, json_t *status);
void show_origins(FILE *out, json_t *origins);
void show_services(FILE *out, json_t *services);
void show_settings(FILE *out, json_t *settings);

#endif
