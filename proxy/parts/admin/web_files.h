/*
 * The files of the web page (admin/web/), which are part of the program: HTML, a style sheet and
 * modules of JavaScript. They need no token, because they show nothing of this proxy; what they show
 * they ask of /v1 with the operator's token.
 *
 *     const struct web_file *file = web_files_find("GET", "/");      NULL: it is none of them
 *     result = web_files_send(connection, file);
 *
 * admin/web/embed.sh writes the table at build time. Each answer allows the browser nothing but these
 * files: no script, style or frame of anybody else, and no text as HTML (Trusted Types).
 *
 * Threads: any; constants.
 */
#ifndef RETORT_ADMIN_WEB_FILES_H
#define RETORT_ADMIN_WEB_FILES_H

#include <microhttpd.h>
#include <stddef.h>

struct web_file {
    const char *path, *type, *tag; /* tag: for ETag, with its quotes */
    const unsigned char *bytes;
    size_t length;
};

/* Ends with a row whose path is NULL. */
extern const struct web_file web_table[];

const struct web_file *web_files_find(const char *method, const char *path);
enum MHD_Result web_files_send(struct MHD_Connection *connection, const struct web_file *file);

#endif
