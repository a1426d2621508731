/*
 * Is the value of a field secret? It is when the field has credentials, what stands for a session, or
 * the name of a user.
 * Where values are shown or kept for people, those of such fields are not: in inspections and
 * recordings (proxy/record/mask.h), and in settings (proxy/settings/shown.h).
 *
 *     if (secret_field(SLICE("X-Vault-Token"))) ...
 *
 * Names are made up by whoever writes programs, so a part of a name is enough: "token", "session".
 * Short ones count as whole words: "otp". A few names have such a part and are no secret:
 * Surrogate-Key, Sec-WebSocket-Key.
 *
 * Threads: pure.
 */
#ifndef RETORT_HTTP_SECRET_FIELD_H
#define RETORT_HTTP_SECRET_FIELD_H

#include "base/slice.h"

bool secret_field(struct slice name);

#endif
