/*
 * The start of an instance of a service, as hosts do it that read the settings from a configuration
 * of their own: the settings by their names, and the service's function start.
 *
 *     struct service_start start;
 *     if (!service_start(&start, ops, &configuration, &host, error)) ...      a sentence
 *     ops->begin(start.service, &exchange);
 *     service_stop(&start, ops);                                              also after a failure
 *
 * The settings are mixed into host.fingerprint as a host of c-icap does it: equal settings give equal
 * fingerprints under all hosts.
 *
 * Threads: one. Errors: "FILE:LINE: service NAME: ..." without a full stop.
 */
#ifndef RETORT_SERVICE_START_H
#define RETORT_SERVICE_START_H

#include "service/service.h"

enum { SERVICE_START_ERROR = 1000 };

struct service_setting {
    struct slice name, value;
    const char *where; /* "FILE:LINE" */
};

struct service_configuration {
    const char *name;    /* of the service, for errors */
    const char *where;   /* it is configured: "FILE:LINE" */
    const char *helpers; /* the socket of retort-helperd; NULL: the module's own setting */
    const struct service_setting *settings;
    size_t setting_count;
};

struct service_start {
    void *settings, *service;
    bool started;
};

bool service_start(struct service_start *start, const struct service_ops *ops,
                   const struct service_configuration *configuration, struct service_host *host,
                   char error[SERVICE_START_ERROR]);
void service_stop(struct service_start *start, const struct service_ops *ops);

#endif
