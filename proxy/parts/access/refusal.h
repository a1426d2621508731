/*
 * What the client is told about a request that the access sections do not let in.
 *
 *     return access_deny(transaction, &decision);          in place of: return STEP_NEXT
 *
 * Threads: the worker's. Memory: the transaction's arena, and its settings.
 */
#ifndef RETORT_ACCESS_REFUSAL_H
#define RETORT_ACCESS_REFUSAL_H

#include "access/rules.h"
#include "transaction/access.h"

/* Makes the page; of a CONNECT, browsers display it only inside of the connection. */
enum step access_deny(struct transaction *transaction, const struct access_decision *decision);
/* About a connection that is opened for it, whose server is called `name`. */
const struct access_refusal *access_refuse_name(struct transaction *transaction,
                                                const struct access_settings *section,
                                                struct slice name);

#endif
