/*
 * Health checks. Each server of a group with a health_check is asked for that path every
 * check_interval, and the group is told the outcome.
 *
 *     struct origin_checks *checks = origin_checks_new(net, connections, securities, groups);
 *     ...
 *     origin_checks_free(&checks);
 *
 * One worker makes the checks for all workers. Each check is an ordinary call to the origin, on a
 * connection of its own. A status from 200 to 399 is good. Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_CHECK_H
#define RETORT_ORIGIN_CHECK_H

#include "origin/group.h"
#include "origin/origin_pool.h"
#include "origin/security.h"

struct origin_checks;

struct origin_checks *origin_checks_new(struct net_context *net, struct origin_pool *connections,
                                        struct origin_securities *securities,
                                        struct origin_groups *groups);
/* The group has other members now. `checks` may be NULL. */
void origin_checks_renew(struct origin_checks *checks, struct origin_group *group);
void origin_checks_free(struct origin_checks **checksp);

#endif
