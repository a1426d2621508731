/*
 * The text that c-icap's info service answers with (?view=text), as numbers:
 *
 *     Running Servers Statistics
 *     ===========================
 *     Children number: 2
 *     Used Servers: 1
 *     REQUESTS : 1027
 *     BYTES IN : 3 Kbs 78 bytes
 *
 *     struct server_numbers numbers;
 *     if (!icap_info_text_read(text, &numbers)) ...        it is no such text
 *
 * Lines that are not known are skipped. All that are known must be there, each once, with numbers
 * that can be counts: the text comes from the network.
 *
 * Threads: pure. Units: bytes; a "Kb" is 1024 of them.
 */
#ifndef RETORT_ICAP_INFO_TEXT_H
#define RETORT_ICAP_INFO_TEXT_H

#include "adapt/server_numbers.h"
#include "base/slice.h"

bool icap_info_text_read(struct slice text, struct server_numbers *numbers);

#endif
