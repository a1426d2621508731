/*
 * How authenticators look at the credentials of a request, one after the other, for the step ACCESS
 * (transaction/proof.h).
 *
 *     settings->proofs = &identity_proofs;                 while there are authenticators
 *
 * Threads: constants.
 */
#ifndef RETORT_IDENTITY_PROOF_H
#define RETORT_IDENTITY_PROOF_H

#include "transaction/proof.h"

extern const struct proof_class identity_proofs;

#endif
