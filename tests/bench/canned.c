/*
 * A web server of libmicrohttpd that answers from memory: what a library allows that does the
 * client side of HTTP and nothing else, from one thread with epoll.
 *
 *     canned PORT        a path that ends in /N is answered with N bytes
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS = 12000, BACKLOG = 4096, LARGEST = 10 << 20, SIZES = 16 };

/* Made at the first request for it; there is one thread. */
static struct {
    size_t size;
    struct MHD_Response *response;
} made[SIZES];

static struct MHD_Response *response_of(size_t size) {
    unsigned i = 0;
    while (i < SIZES && made[i].response != NULL && made[i].size != size)
        i++;
    if (i == SIZES || size > LARGEST)
        return NULL;
    if (made[i].response != NULL)
        return made[i].response;
    char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return NULL;
    for (size_t at = 0; at < size; at++)
        bytes[at] = (char)('0' + at % 10);
    made[i].size = size;
    made[i].response = MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(made[i].response, "Content-Type", "text/plain");
    MHD_add_response_header(made[i].response, "Cache-Control", "max-age=86400");
    return made[i].response;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **state) {
    (void)context;
    (void)method;
    (void)version;
    (void)upload;
    (void)upload_size;
    static int known;
    if (*state == NULL) { /* the library wants its answer behind the body, or closes */
        *state = &known;
        return MHD_YES;
    }
    struct MHD_Response *response = response_of(strtoul(strrchr(path, '/') + 1, NULL, 10));
    return response == NULL ? MHD_NO : MHD_queue_response(connection, MHD_HTTP_OK, response);
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s PORT\n", arguments[0]);
        return EXIT_FAILURE;
    }
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(arguments[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0, NULL, NULL, on_request, NULL,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned)BACKLOG, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "%s: no server on port %s\n", arguments[0], arguments[1]);
        return EXIT_FAILURE;
    }
    for (;;)
        pause();
}
