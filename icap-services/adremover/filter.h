/*
 * A filter tells which URLs are ads. It reads rules in the language of EasyList and uBlock Origin
 * (static network filters), and hosts files. An index of the rules (rule_index.h) answers without
 * walking over all of them.
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
 *   @@rule              an exception: what it matches is not blocked; a rule with $important
 *                       blocks it all the same
 *   0.0.0.0 ads.example a line of a hosts file: exactly that host; a line may name several
 *   ! comment           also # in hosts files, [Adblock ...]
 *   a.com##.ad          element hiding, and exceptions from it ($generichide): only counted
 * Options stand behind a "$":
 *   script image ~image the types of requests the rule is for, or not for; a rule without any is
 *                       for all types but the page itself
 *   third-party  ~third-party (3p, 1p, first-party)       is the page of another site?
 *   domain=a.com|~b.a.com|shop.*|/^cdn\d/   the pages (from=)
 *   to=  denyallow=     the hosts, or not those
 *   method=get|~post    match-case    important
 *   badfilter           withdraws the rule that is the same but for this option
 *   redirect=noopjs     blocks, and says what to answer; redirect-rule= only says what to answer
 *   removeparam=utm_id  takes a parameter off the URL: =~all-but-this, =/regex/i, or without value
 * The filter skips a rule with any other option, with one in another form, or with a list twice, and counts it
 * by the name of the option. An important rule of any kind yields to important exceptions only.
 * @@||page.example^$document lets everything pass that belongs to such a page.
 *
 * A proxy knows less about a request than a browser does: the type or the page may not be known. A
 * blocking rule that asks for what is not known does not apply. An exception that asks for it does
 * apply, unless it is for certain pages and the page is not known. So a request that is in doubt
 * passes; its verdict is FILTER_UNDECIDED.
 *
 * Threads: one thread fills the filter, then all threads share it read-only. Errors: the filter
 * skips a bad rule and counts it.
 */
#ifndef RETORT_ADREMOVER_FILTER_H
#define RETORT_ADREMOVER_FILTER_H

#include "adremover/request.h"

enum filter_verdict { FILTER_PASS, FILTER_BLOCK, FILTER_EXCEPTION, FILTER_UNDECIDED };

struct filter_answer {
    enum filter_verdict verdict;
    struct slice rule;     /* the rule that decided, as it stands in its list; or empty */
    struct slice resource; /* FILTER_BLOCK: name of what the lists want in its place; or empty */
};

enum { FILTER_OPTIONS_MAX = 64, FILTER_OPTION_NAME = 32 };

struct filter_counts {
    unsigned rules, exceptions, hosts, regexes;
    unsigned cosmetic, withdrawn; /* withdrawn: by badfilter */
    unsigned unsupported, bad;    /* rules that were skipped */
    char first_bad[160];          /* the first bad rule, with file and line */
    unsigned option_count;        /* names of options that made rules unsupported */
    struct {
        char name[FILTER_OPTION_NAME];
        unsigned rules;
    } options[FILTER_OPTIONS_MAX];
};

struct filter;

struct filter *filter_create(void);
void filter_free(struct filter **filterp);

/* A directory stands for its files whose names end in .txt. False: something could not be read; the
 * rest was. */
bool filter_load(struct filter *filter, const char *path, char *error, size_t error_size);
/* Adds one line of a list. `where` is its file and line, for first_bad. */
void filter_add(struct filter *filter, struct slice line, const char *where);
void filter_seal(struct filter *filter);
const struct filter_counts *filter_counts(const struct filter *filter);
/* A hash of all that was loaded. It changes when a list changes. */
uint64_t filter_fingerprint(const struct filter *filter);

/* Returns answer->verdict. The slices of the answer live as long as the filter. */
enum filter_verdict filter_match(const struct filter *filter, struct filter_request *request,
                                 struct filter_answer *answer);

/* Writes the URL without the parameters that removeparam rules take off. Returns the length; 0 when
 * nothing is taken off. A `capacity` of the URL's own length is enough. *rule becomes the first
 * rule that took something off. */
size_t filter_strip(const struct filter *filter, struct filter_request *request, char *out,
                    size_t capacity, struct slice *rule);

#endif
