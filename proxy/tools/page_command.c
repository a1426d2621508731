#include "tools/commands.h"

#include "admin/answer.h"
#include "tools/http_call.h"
#include "tools/transfer.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { USUAL_PORT = 3129, PAGE_TEXT = 600 };

struct page_ways {
    char here[PAGE_TEXT]; /* the URL in a browser of this machine; empty: there is none */
    char command[PAGE_TEXT],
        there[PAGE_TEXT]; /* on another machine, and then the URL in its browser */
};

/* A browser reaches a Unix socket only through ssh, which runs as somebody who may open it. A
 * server certificate is for a name; through ssh that name is localhost. */
static struct page_ways ways_to(const char *where) {
    struct page_ways ways = {0};
    char host[HOST_NAME_MAX + 1] = "HOST";
    const bool secure = strncasecmp(where, "https://", 8) == 0;
    char *authority = transfer_authority(where), *path = NULL;
    const char *port = strrchr(authority, ':');
    gethostname(host, sizeof host - 1);
    if (transfer_is_path(where))
        path = realpath(where, NULL); /* the other machine does not know where this one is now */
    if (transfer_is_path(where) || port == NULL) {
        snprintf(ways.command, PAGE_TEXT, "ssh -N -L localhost:%d:%s root@%s", (int)USUAL_PORT,
                 path != NULL ? path : where, host);
        snprintf(ways.there, PAGE_TEXT, "http://localhost:%d/", (int)USUAL_PORT);
    } else {
        snprintf(ways.here, PAGE_TEXT, "http%s://%s/", secure ? "s" : "", authority);
        snprintf(ways.command, PAGE_TEXT, "ssh -N -L localhost%s:%s %s", port, authority, host);
        snprintf(ways.there, PAGE_TEXT, "http%s://localhost%s/", secure ? "s" : "", port);
    }
    free(authority);
    free(path);
    return ways;
}

static void tell_ways(const struct page_ways *ways, const char *role) {
    if (ways->here[0] != '\0')
        printf("With a browser on this machine, open %s\n", ways->here);
    printf("On another machine:\n    %s\nand there, in a browser, %s\n", ways->command,
           ways->there);
    if (ways->here[0] != '\0')
        puts("The page asks for a token of admin.token_file, unless the browser has a certificate "
             "of\n"
             "admin.certificate_roles; what it offers depends on the role.");
    else
        puts("The socket needs no token from root and from the proxy's user. So while ssh runs, "
             "everybody on the other\nmachine who can connect to that port is an admin of this "
             "proxy. Where others use that machine, let\nadmin.listen be an address with tokens.");
    printf("Your role is %s.\n", role);
}

static int page_command_tell(const char *where, bool raw, json_t *answer) {
    const struct page_ways ways = ways_to(where);
    const char *role = json_string_value(json_object_get(answer, "role"));
    if (!raw) {
        tell_ways(&ways, role == NULL ? "not known" : role);
        return EXIT_SUCCESS;
    }
    json_t *json = json_pack("{s:s, s:s, s:s, s:s}", "here", ways.here, "command", ways.command,
                             "there", ways.there, "role", role == NULL ? "" : role);
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
    return EXIT_SUCCESS;
}

int page_command(const char *where, bool json) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    int status = EXIT_FAILURE;
    if (!http_call(&answer, where, "GET", "/v1/whoami", error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    json_t *told = answer_load(answer.body, answer.length);
    const char *reason = json_string_value(json_object_get(told, "error"));
    if (answer.status == 200)
        status = page_command_tell(where, json, told);
    else
        fprintf(stderr, "retortctl: %s\n",
                reason != NULL ? reason : "the admin plane has no page; is it of this version?");
    json_decref(told);
    http_answer_release(&answer);
    return status;
}
