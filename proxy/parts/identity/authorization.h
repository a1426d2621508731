/*
 * The parser of Authorization and Proxy-Authorization (RFC 9110 §11.4, §11.6.2), and of the
 * credentials of Basic (RFC 7617).
 *
 *     struct slice value;
 *     switch (authorization_find(head, HTTP_PROXY_AUTHORIZATION, &value)) {
 *     case AUTHORIZATION_NONE: ...                   nobody says who he is
 *     case AUTHORIZATION_BAD:  ...                   several lines, or too long: 400
 *     case AUTHORIZATION_ONE:
 *         struct authorization authorization;
 *         if (authorization_parse(value, &authorization) && authorization.token68.length > 0) ...
 *     }
 *
 *     char text[AUTHORIZATION_BASIC];
 *     struct slice user, password;
 *     if (authorization_basic(authorization.token68, text, &user, &password)) ...
 *
 * The parser holds no state and allocates nothing.
 *
 * Threads: values.
 */
#ifndef RETORT_IDENTITY_AUTHORIZATION_H
#define RETORT_IDENTITY_AUTHORIZATION_H

#include "base/arena.h"
#include "http/head.h"

#include <stdbool.h>

/* Bytes of a value, and of a name and a password of Basic. What is longer is refused. */
enum { AUTHORIZATION_MAX = 16384, AUTHORIZATION_BASIC = 1024 };

enum authorization_found { AUTHORIZATION_NONE, AUTHORIZATION_ONE, AUTHORIZATION_BAD };

struct authorization {
    struct slice scheme;     /* a token; it has no case */
    struct slice token68;    /* "QWxhZGRpbg=="; empty: there are parameters, or nothing */
    struct slice parameters; /* "realm=\"a\", nc=1", well formed; empty: none */
};

/* The one value of the field. BAD: it occurs twice, is empty, or has more than AUTHORIZATION_MAX
 * bytes. */
enum authorization_found authorization_find(const struct http_head *head, enum http_name name,
                                            struct slice *value);
/* False: the value is not `scheme [ 1*SP ( token68 / #auth-param ) ]`. */
bool authorization_parse(struct slice value, struct authorization *authorization);
bool authorization_is(const struct authorization *authorization, const char *scheme);
/* The name and the password, in `text`: UTF-8 without control characters, of which the name has no
 * colon (RFC 7617 §2). False: they are not. The caller wipes the text. */
bool authorization_basic(struct slice token68, char text[AUTHORIZATION_BASIC], struct slice *user,
                         struct slice *password);

/*
 * Challenges (RFC 9110 §11.3): what a 401 or 407 asks for. Memory: the arena.
 *
 *     challenge_basic(SLICE("Staff \"1\""), &arena)       Basic realm="Staff \"1\"", charset="UTF-8"
 *     challenge_bearer(SLICE("api"), true, &arena)        Bearer realm="api", error="invalid_token"
 */

/* A quoted-string (RFC 9110 §5.6.4): quotes and backslashes are escaped, control characters become
 * blanks. */
struct slice challenge_quote(struct slice text, struct arena *arena);
/* RFC 7617 §2.1: the client is told to send UTF-8. */
struct slice challenge_basic(struct slice realm, struct arena *arena);
/* RFC 6750 §3. `refused`: the client has sent a token. */
struct slice challenge_bearer(struct slice realm, bool refused, struct arena *arena);

#endif
