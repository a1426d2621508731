/*
 * Counts transactions by a key: the host, the client, the URL, the status or the services.
 *
 *     struct tally *tally = tally_new(TALLY_HOST);
 *     tally_add(tally, &record);                                  tools/log_entry.h
 *     tally_print(tally, stdout, &(struct tally_view){.sort = "requests", .rows = 20});
 *     tally_free(&tally);
 *
 * Memory is bounded: with TALLY_KEYS keys, the half of them with the fewest transactions is counted
 * among "others" from then on. What is shown of a key that comes again later is then less than all.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_TOOLS_TALLY_H
#define RETORT_TOOLS_TALLY_H

#include "tools/command.h"
#include "tools/log_entry.h"

#include <stdio.h>

/* TALLY_KEY_MAX: bytes of a key that are kept. TALLY_ROWS: shown unless said otherwise. */
enum { TALLY_KEYS = 8192, TALLY_KEY_MAX = 400, TALLY_ROWS = 20, TALLY_ROWS_MAX = 1000 };

enum tally_key { TALLY_HOST, TALLY_CLIENT, TALLY_URL, TALLY_SERVICE, TALLY_STATUS, TALLY_NO_KEY };

/* "host", "client", "url", "service" or "status"; else TALLY_NO_KEY. */
enum tally_key tally_key_of(const char *word);

struct tally;

struct tally_view {
    const char *sort; /* "requests", "bytes", "errors" or "p95" */
    unsigned long rows;
    double seconds;     /* that it took; 0: not known, or of no interest */
    uint64_t bad_lines; /* that were left out */
    bool json;          /* one line */
};

/* By the options of a command. False: after a message. */
bool tally_view_read(struct tally_view *view, enum tally_key *key, const struct command_line *line);
struct tally *tally_new(enum tally_key key);
void tally_add(struct tally *tally, const struct log_entry *record);
void tally_print(struct tally *tally, FILE *out, const struct tally_view *view);
void tally_free(struct tally **tallyp);

#endif
