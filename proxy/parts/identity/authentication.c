#include "identity/authentication.h"

#include "base/assert.h"

struct authentication *authentication_new(const struct authentication_settings *settings,
                                          unsigned workers) {
    struct authentication *authentication;
    ALLOC_OBJ(authentication, AUTHENTICATION_MAGIC);
    authentication->threads =
        check_threads_new(settings->threads > 0 ? settings->threads : workers, settings->queue_max);
    authentication->remembered = remembered_new(settings->remember_entries);
    authentication->attempts = attempts_new(settings);
    authentication->flights = flights_new();
    return authentication;
}

void authentication_configure(struct authentication *authentication,
                              const struct authentication_settings *settings) {
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_set_queue(authentication->threads, settings->queue_max);
    attempts_configure(authentication->attempts, settings);
}

void authentication_stop(struct authentication *authentication) {
    if (authentication == NULL)
        return;
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_stop(authentication->threads);
}

void authentication_free(struct authentication **authenticationp) {
    struct authentication *authentication = *authenticationp;
    *authenticationp = NULL;
    if (authentication == NULL)
        return;
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_free(&authentication->threads);
    remembered_free(&authentication->remembered);
    attempts_free(&authentication->attempts);
    flights_free(&authentication->flights);
    FREE_OBJ(authentication);
}
