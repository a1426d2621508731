/*
 * The text of an answer, for people: made from the answer's JSON by a form, a text with places for
 * members. The forms stand in the table of calls.
 *
 *     const struct answer_style style = {.colours = false, .zone = 3600};
 *     answer_text_write(out, "{url} has {hits%6d} hits[pinned , and stays]\n", &style, json);
 *
 *     {NAME}            a member: a text, or a number. NAME may be a.b; where this object lacks it,
 *                       that of the objects around it counts
 *     {NAME%-24s}       as printf writes it: s, d or f, with width and precision; {NAME*%.2f}: a
 *                       thousand times the number
 *     {NAME!%-8s}       in the colour of a state: up, down
 *     {NAME:size}       by one of the functions in answer_text.c; {:hits}: of the whole object
 *     {NAME/one/more}   the word that goes with the number
 *     [NAME ...]        only when it is true: not null, false, 0 or empty. [!NAME ...]: otherwise.
 *                       [?NAME ...]: when it is there and not null. [NAME=up ...]: when its text is
 *                       that. [.next ...]: behind the first element
 *     <NAME ...>        for each element of a list or member of an object: {.} is it, {.key} its name
 *     ^...^             the headings of a table, with a line end
 *     \                 makes the next of these characters a usual one
 *
 * A line that begins with "! " is a complaint; retortctl writes it to stderr. `json` is changed: it
 * gets escapes for what controls terminals (admin/answer.h).
 *
 * Threads: values.
 */
#ifndef RETORT_ADMIN_ANSWER_TEXT_H
#define RETORT_ADMIN_ANSWER_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum answer_colour { ANSWER_PLAIN, ANSWER_HEADING, ANSWER_GOOD, ANSWER_BAD, ANSWER_NOTE };

struct answer_style {
    bool colours;
    long zone; /* seconds that local time is ahead of UTC */
};

void answer_text_write(FILE *out, const char *form, const struct answer_style *style, json_t *json);
/* The complaints of a refusal: {"error": ..., "errors": [lines]}. */
void answer_text_refuse(FILE *out, json_t *json);

/* What a terminal is sent before a text of that colour. */
const char *answer_colour_code(enum answer_colour colour);
/* How a word for a state is shown: "up", "down". */
enum answer_colour answer_colour_of(const char *state);

#endif
