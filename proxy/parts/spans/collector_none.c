/* Without libcurl. The settings refuse the section tracing then, so nothing is ever posted. */
#include "spans/collector.h"

#include <stdio.h>

struct collector *collector_new(void) {
    return NULL;
}

void collector_free(struct collector **collectorp) {
    *collectorp = NULL;
}

enum collector_answer collector_post(struct collector *collector,
                                     const struct collector_request *request,
                                     struct collector_reply *reply, char error[COLLECTOR_ERROR]) {
    (void)collector;
    (void)request;
    reply->length = 0;
    snprintf(error, COLLECTOR_ERROR, "this retort was built without libcurl");
    return COLLECTOR_REFUSED;
}
