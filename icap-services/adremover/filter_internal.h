/*
 * What filter.c (filling), filter_match.c and filter_strip.c share.
 *
 * Each class of rules has an index of its own. So a request is matched only against the classes
 * that can still change the answer: against the exceptions only when a rule blocks it. Threads: see
 * filter.h.
 */
#ifndef RETORT_ADREMOVER_FILTER_INTERNAL_H
#define RETORT_ADREMOVER_FILTER_INTERNAL_H

#include "adremover/filter.h"
#include "adremover/rule_index.h"

enum filter_class {
    FILTER_CLASS_IMPORTANT,
    FILTER_CLASS_BLOCKING,
    FILTER_CLASS_EXCEPTIONS,
    FILTER_CLASS_PAGES, /* exceptions for all that belongs to a page */
    FILTER_CLASS_REDIRECTS,
    FILTER_CLASS_REDIRECT_EXCEPTIONS,
    FILTER_CLASS_STRIPS,
    FILTER_CLASS_STRIP_EXCEPTIONS,
    FILTER_CLASSES
};

struct text_block;

struct filter {
    unsigned magic;
#define FILTER_MAGIC 0x46696c74u
    struct rule *rules;
    uint32_t count, capacity;
    struct text_block *texts;
    size_t text_room;
    struct rule_index classes[FILTER_CLASSES];
    struct filter_counts counts;
    uint64_t fingerprint;
    bool sealed;
};

/* Looks through a class and calls the visitor for each rule that fits in every respect. When it is
 * not known whether a rule fits, an exception counts as fitting; any other rule counts as not
 * fitting, and *unknown becomes true. `unknown` may be NULL. */
bool filter_search(const struct filter *filter, enum filter_class class,
                   struct filter_request *request, bool *unknown, rule_visitor visit, void *arg);

#endif
