/*
 * A message on its way through a chain of services (adapt/chain.h), which works on it in place.
 *
 * Threads: the worker's. The heads and the slices are the transaction's, for as long as it lives.
 */
#ifndef RETORT_ADAPT_MESSAGE_H
#define RETORT_ADAPT_MESSAGE_H

#include "adapt/client_fields.h"
#include "adapt/opt_outs.h"
#include "event/source.h"
#include "http/head.h"
#include "transaction/spans.h"

struct adapt_message {
    struct http_head *request;  /* its target is the absolute URL */
    struct http_head *response; /* NULL at a REQMOD point, until a service answers */
    struct source *body;        /* of the response if there is one, else of the request; owned */
    struct slice path, transaction_id;
    struct adapt_opt_out **opt_outs; /* of the transaction; NULL: nobody opts out */
    struct adapt_trace *trace;       /* NULL: they learn nothing of it */
    struct adapt_client client;      /* its proxy_authenticate goes back into the response's head */
};

#endif
