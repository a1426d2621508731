#include "admin/web_files.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name, *value;
} web_fields[] = {
    {MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"},
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
     "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
};

const struct web_file *web_files_find(const char *method, const char *path) {
    const struct web_file *file = web_table;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return NULL;
    while (file->path != NULL && strcmp(file->path, path) != 0)
        file++;
    return file->path == NULL ? NULL : file;
}

/* Does the browser have the file already? Browsers send the one tag that they have. */
static bool has_it(struct MHD_Connection *connection, const struct web_file *file) {
    const char *tag =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    return tag != NULL && strcmp(tag, file->tag) == 0;
}

enum MHD_Result web_files_send(struct MHD_Connection *connection, const struct web_file *file) {
    bool known = has_it(connection, file);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        known ? 0 : file->length, (void *)file->bytes, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, file->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, file->tag);
    for (size_t i = 0; i < sizeof web_fields / sizeof *web_fields; i++)
        MHD_add_response_header(response, web_fields[i].name, web_fields[i].value);
    enum MHD_Result result =
        MHD_queue_response(connection, known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}
