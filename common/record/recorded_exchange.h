/*
 * A recorded exchange with an ICAP service (icap/recording.h), and the format of the file.
 *
 *     file:     "retort-icap 0001"  record  record ...  the last record, of kind END
 *     record:   | 0x0a636572 | kind | length of the content | sum of it | sum of this | content |
 *                 4 bytes      4      8                       8           8
 *     content:  parts, each | its number | 0 | its length | its bytes |
 *                             4 bytes      4   8
 *
 * Numbers are little-endian. Sums are XXH3 with 64 bits; the last sum in the head of a record
 * covers the 24 bytes before it. Part 1 describes the exchange in lines "name value". The other
 * parts are numbered from 2 in the order of record/recorded_exchange.def, which has all names.
 * Unknown parts are skipped. A file without an END was cut off; the records before the cut are
 * valid.
 *
 *     struct recorded_exchange recorded = {.service = SLICE("gray"), ...};
 *     char *record = recorded_exchange_write(&recorded, RECORDED_EXCHANGE, &length);
 *     ...
 *     if (!icap_record_head_parse(&head, bytes)) ...             32 of them: damaged
 *     if (!icap_record_content_fits(&head, content)) ...         likewise
 *     if (!recorded_exchange_parse(&recorded, content, &error)) ...  slices of the content
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
    RECORDED_BODY_MAX = 16 << 20, /* largest recorded part of a body */
    RECORDED_MAX = 40 << 20,      /* largest content of a record: two bodies and the heads */
    INSPECTIONS_KEPT = 100,       /* transactions that an inspection keeps, and exchanges of each */
    INSPECTED_RECORDS = 32,
};

enum icap_record_kind { RECORDED_EXCHANGE = 1, RECORDED_END = 2 };

struct icap_record_head {
    enum icap_record_kind kind;
    size_t length; /* length of the content; at most RECORDED_MAX */
    uint64_t sum;
};

/* Returns a record with its head; the caller frees it. Returns NULL when memory is exhausted, or
 * when the record would be longer than RECORDED_MAX. */
char *recorded_exchange_write(const struct recorded_exchange *recorded, enum icap_record_kind kind,
                              size_t *length);
bool icap_record_head_parse(struct icap_record_head *head, const char bytes[RECORDED_HEAD]);
bool icap_record_content_fits(const struct icap_record_head *head, struct slice content);
bool recorded_exchange_parse(struct recorded_exchange *recorded, struct slice content,
                             const char **error);
/* Finds a PART by its name. Returns false when there is no such part. */
bool recorded_exchange_part(const struct recorded_exchange *recorded, const char *name,
                            struct slice *bytes);

#endif
