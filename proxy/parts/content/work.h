/*
 * The work of the room's thread: one operation of a service, from the store and the disks to its
 * answer.
 *
 *     content_work(operation);                        it is CONTENT_BUSY, and is not afterwards
 *
 * Threads: the room's.
 */
#ifndef RETORT_CONTENT_WORK_H
#define RETORT_CONTENT_WORK_H

#include "content/operation.h"

void content_work(struct content_operation *operation);

#endif
