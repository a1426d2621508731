/*
 * A field line that an operator writes, for a head that is sent or stored.
 *
 *     const char *reason = header_line_check("X-Kind: a");       NULL: it is good
 *
 * Exactly one field: a name that is a token, a colon, and a value without controls (RFC 9110 §5.1,
 * §5.5). Fields that say where a message ends are refused too: they are for who writes the message.
 *
 * Threads: pure.
 */
#ifndef RETORT_CTL_HEADER_LINE_H
#define RETORT_CTL_HEADER_LINE_H

const char *header_line_check(const char *line);

#endif
