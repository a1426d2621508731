/*
 * A field line from the operator for a head that is sent or stored.
 *
 *     const char *reason = header_line_check("X-Kind: a");       NULL: it is good
 *
 * The line must be exactly one field: a name that is a token, a colon, and a value without control
 * characters (RFC 9110 §5.1, §5.5). Fields that determine the end of a message are refused as well,
 * because retortctl writes them itself.
 *
 * Threads: pure.
 */
#ifndef RETORT_TOOLS_HEADER_LINE_H
#define RETORT_TOOLS_HEADER_LINE_H

const char *header_line_check(const char *line);

#endif
