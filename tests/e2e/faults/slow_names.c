/*
 * A resolver that does not answer, for the end-to-end tests: a library that is loaded into the proxy
 * before all others. The look-up of each name below slow.test takes a minute, and finds nothing.
 *
 *     LD_PRELOAD=slow_names.so retort -f ...
 *
 * Threads: any.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS = 60 };

typedef int look_up_fn(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    if (host != NULL && strstr(host, ".slow.test") != NULL) {
        sleep(SECONDS);
        return EAI_AGAIN;
    }
    look_up_fn *real = (look_up_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
    return real(host, service, hints, found);
}
