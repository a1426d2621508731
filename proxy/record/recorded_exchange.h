/*
 * An exchange with an ICAP service, as it is recorded (icap/recording.h), and the file of them.
 *
 *     file:     "retort-icap 0001"  record  record ...  the last record, of kind END
 *     record:   | 0x0a636572 | kind | length of the content | sum of it | sum of this | content |
 *                 4 bytes      4      8                       8           8
 *     content:  parts, each | its number | 0 | its length | its bytes |
 *                             4 bytes      4   8
 *
 * Numbers are little-endian, sums XXH3 with 64 bits, the last one in a record's head is of the 24
 * bytes before it. Part 1 tells of the exchange, in lines "name value"; the others are numbered
 * from 2 on, in the order of record/recorded_exchange.def, which has all names. Those that are not known are
 * passed over. A file without an END was cut off; what stands before that is good.
 *
 *     struct recorded_exchange exchange = {.service = SLICE("gray"), ...};
 *     char *record = recorded_exchange_write(&exchange, RECORDED_EXCHANGE, &length);
 *     ...
 *     if (!icap_record_head_parse(&head, bytes)) ...             32 of them: damaged
 *     if (!icap_record_content_fits(&head, content)) ...         likewise
 *     if (!recorded_exchange_parse(&exchange, content, &error)) ...  slices of the content
 *
 * Threads: values. Reading never trusts a length before it is checked.
 */
#ifndef RETORT_RECORDED_EXCHANGE_H
#define RETORT_RECORDED_EXCHANGE_H

#include "base/slice.h"

struct recorded_exchange {
#define TEXT(name, help)   struct slice name;
#define NUMBER(name, help) uint64_t name;
#define PART(name, help)   struct slice name;
#include "record/recorded_exchange.def"
#undef TEXT
#undef NUMBER
#undef PART
};

#define RECORDED_FILE_HEAD "retort-icap 0001"

enum {
    RECORDED_FILE_HEAD_LENGTH = sizeof RECORDED_FILE_HEAD - 1,
    RECORDED_HEAD = 32,
    RECORDED_BODY_MAX = 16 << 20, /* kept of a body, at most */
    RECORDED_MAX = 40 << 20,      /* content of a record: two of these, and the heads */
};

enum icap_record_kind { RECORDED_EXCHANGE = 1, RECORDED_END = 2 };

struct icap_record_head {
    enum icap_record_kind kind;
    size_t length; /* of the content; not more than RECORDED_MAX */
    uint64_t sum;
};

/* A record, head and all; the caller frees it. NULL: memory is exhausted, or it would be longer
 * than RECORDED_MAX. */
char *recorded_exchange_write(const struct recorded_exchange *exchange, enum icap_record_kind kind,
                              size_t *length);
bool icap_record_head_parse(struct icap_record_head *head, const char bytes[RECORDED_HEAD]);
bool icap_record_content_fits(const struct icap_record_head *head, struct slice content);
bool recorded_exchange_parse(struct recorded_exchange *exchange, struct slice content,
                             const char **error);
/* A PART by its name; false: there is no such part. */
bool recorded_exchange_part(const struct recorded_exchange *exchange, const char *name,
                            struct slice *bytes);

#endif
