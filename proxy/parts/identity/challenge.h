/*
 * Challenges (RFC 9110 §11.3): what a 401 or 407 asks for.
 *
 *     challenge_basic(SLICE("Staff \"1\""), &arena)       Basic realm="Staff \"1\"", charset="UTF-8"
 *     challenge_bearer(SLICE("api"), true, &arena)        Bearer realm="api", error="invalid_token"
 *
 * Threads: pure. Memory: the arena.
 */
#ifndef RETORT_IDENTITY_CHALLENGE_H
#define RETORT_IDENTITY_CHALLENGE_H

#include "base/arena.h"

#include <stdbool.h>

/* A quoted-string (RFC 9110 §5.6.4): quotes and backslashes are escaped, control characters become
 * blanks. */
struct slice challenge_quote(struct slice text, struct arena *arena);
/* RFC 7617 §2.1: the client is told to send UTF-8. */
struct slice challenge_basic(struct slice realm, struct arena *arena);
/* RFC 6750 §3. `refused`: the client has sent a token. */
struct slice challenge_bearer(struct slice realm, bool refused, struct arena *arena);

#endif
