/*
 * A filter: which URLs are ads? Rules in the language of EasyList and uBlock Origin (static network
 * filters) and hosts files, tens of thousands of them, answered without walking over them.
 *
 *     struct filter *filter = filter_create();
 *     filter_load(filter, "/etc/retort/easylist.txt", error, sizeof error);     false: unreadable
 *     filter_seal(filter);                                    builds the index; then read-only
 *
 *     struct filter_request request;                          see request.h
 *     struct filter_answer answer;
 *     filter_request_init(&request, url);
 *     if (filter_match(filter, &request, &answer) == FILTER_BLOCK) ... answer.rule, answer.resource
 *     filter_free(&filter);
 *
 * Rules
 *   ads/banner          anywhere in the URL; * stands for any bytes, ^ for a separator (any byte
 *                       but letters, digits, _ - . %) or the end
 *   |http://x  swf|     at the beginning, at the end
 *   ||example.com^      that host and all below it
 *   /ad[0-9]+/          a regular expression
 *   @@rule              an exception: what it matches is not blocked ($important overrules)
 *   0.0.0.0 ads.example a line of a hosts file: exactly that host, or those
 *   ! comment           also # in hosts files, [Adblock ...]
 *   a.com##.ad          element hiding, and exceptions from it ($generichide): only counted
 * and behind a "$":
 *   script image ~image the types of requests it is for, or not for; without any: all but the page
 *   third-party  ~third-party (3p, 1p, first-party)       is the page of another site?
 *   domain=a.com|~b.a.com|shop.*|/^cdn\d/   the pages (from=)
 *   to=  denyallow=     the hosts, or not those
 *   method=get|~post    match-case    important    badfilter (that very rule is not there)
 *   redirect=noopjs     blocks, and says what to answer; redirect-rule= says only that
 *   removeparam=utm_id  takes a parameter off the URL: =~all-but-this, =/regex/i, or without value
 * A rule with another option is passed over and counted by the option's name.
 * @@||page.example^$document lets everything pass that belongs to such a page.
 *
 * What a proxy knows of a request is less than what a browser knows. Where it does not know the
 * type or the page a rule asks for, a blocking rule does not apply and an exception does (but not
 * one for certain pages where the page is not known): when in doubt the request passes; it is
 * counted as undecided.
 *
 * Threads: filled by one, then shared read-only. Errors: a bad rule is passed over and counted.
 */
#ifndef RETORT_ADREMOVER_FILTER_H
#define RETORT_ADREMOVER_FILTER_H

#include "adremover/request.h"

enum filter_verdict { FILTER_PASS, FILTER_BLOCK, FILTER_EXCEPTION, FILTER_UNDECIDED };

struct filter_answer {
    enum filter_verdict verdict;
    struct slice rule;     /* the rule that decided, as it stands in its list; or empty */
    struct slice resource; /* FILTER_BLOCK: what the lists want in its place; or empty */
};

enum { FILTER_OPTIONS_MAX = 64, FILTER_OPTION_NAME = 32 };

struct filter_counts {
    unsigned rules, exceptions, hosts, regexes;
    unsigned cosmetic, withdrawn; /* withdrawn: by badfilter */
    unsigned unsupported, bad;    /* passed over */
    char first_bad[160];          /* the first bad one, with file and line */
    unsigned option_count;        /* names of options that made rules unsupported */
    struct {
        char name[FILTER_OPTION_NAME];
        unsigned rules;
    } options[FILTER_OPTIONS_MAX];
};

struct filter;

struct filter *filter_create(void);
void filter_free(struct filter **filterp);
bool filter_load(struct filter *filter, const char *path, char *error, size_t error_size);
/* One line; `where` is for first_bad. */
void filter_add(struct filter *filter, struct slice line, const char *where);
void filter_seal(struct filter *filter);
const struct filter_counts *filter_counts(const struct filter *filter);
/* Of all that was loaded: changes when a list changes. */
uint64_t filter_fingerprint(const struct filter *filter);

/* Returns answer->verdict. Slices live as long as the filter. */
enum filter_verdict filter_match(const struct filter *filter, struct filter_request *request,
                                 struct filter_answer *answer);

/* The URL without the parameters that removeparam rules take off. Returns its length; 0 when
 * nothing is taken off. `capacity` of the URL's own length is enough. *rule is the first of the
 * rules. */
size_t filter_strip(const struct filter *filter, struct filter_request *request, char *out,
                    size_t capacity, struct slice *rule);

#endif
