/*
 * What a collector says in its answer to a post: how many of its spans it did not take, and why (OTLP,
 * "Partial Success": {"partialSuccess":{"rejectedSpans":"3","errorMessage":"..."}}).
 *
 *     char why[OTLP_ANSWER_WHY];
 *     uint64_t rejected = otlp_answer_rejected(body, why);        0, and an empty text: nothing
 *
 * The answer comes from the network. What is no such answer says nothing. A number may be written as
 * one or as a text, as JSON of protocol buffers allows. Of the text visible ASCII is left.
 *
 * Threads: pure.
 */
#ifndef RETORT_SPANS_OTLP_ANSWER_H
#define RETORT_SPANS_OTLP_ANSWER_H

#include "base/slice.h"

#include <stdint.h>

enum { OTLP_ANSWER_WHY = 200 };

uint64_t otlp_answer_rejected(struct slice body, char why[OTLP_ANSWER_WHY]);

#endif
