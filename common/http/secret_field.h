/*
 * Is the value of a field secret? It is when the field has credentials, what stands for a session, or
 * the name of a user.
 * Where values are shown or kept for people, those of such fields are not: in inspections and
 * recordings (common/record/mask.h), in settings (common/config/shown.h), and of what is stored.
 * Who names such a field for a log (proxy/core/log/format.h) or for a text of another field, a URL or a
 * page (proxy/core/text/text_template.h) is refused if it has credentials or stands for a session.
 * Names of users may stand there, as the proven user does.
 *
 *     if (secret_field(SLICE("X-Vault-Token"))) ...
 *     if (credential_field(SLICE("X-Forwarded-User"))) ...          false
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
/* The same without names of users. */
bool credential_field(struct slice name);

#endif
