/*
 * What a server of services says about itself: c-icap's info service does (icap/info.h).
 *
 *     struct server_report report;                   of an endpoint, in its service_endpoint_report
 *     if (report.asked && report.answered)
 *         ... report.up, report.numbers.requests ...
 *
 * server_numbers.def names each number with its help text, once.
 *
 * Threads: values. Units: the names say them; bytes, else counts.
 */
#ifndef RETORT_ADAPT_SERVER_NUMBERS_H
#define RETORT_ADAPT_SERVER_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Of uint64_t only. */
struct server_numbers {
#define SERVER_NUMBER(name, kind, help) uint64_t name;
#include "adapt/server_numbers.def"
#undef SERVER_NUMBER
};

struct server_report {
    bool asked;        /* the settings say so; else nothing below counts */
    bool answered;     /* once at least */
    bool up;           /* the last question had an answer */
    uint64_t failures; /* questions without a usable answer */
    struct server_numbers numbers;
};

#endif
