/*
 * Reader threads: they do what may wait for a device, so that no event loop has to.
 *
 *     struct readers *readers = readers_new(4);
 *     job->job.run = read_it;                       embedded in what it belongs to
 *     readers_submit(readers, &job->job);           run(job) follows in one of the threads
 *     readers_free(&readers);                       after the last job has run
 *
 * Threads: any. Threads are started when they are first needed.
 */
#ifndef RETORT_DISK_READERS_H
#define RETORT_DISK_READERS_H

#include "base/list.h"

struct readers;

struct reader_job {
    struct list_link link;
    void (*run)(struct reader_job *job);
};

struct readers *readers_new(unsigned threads);
void readers_free(struct readers **readersp);
void readers_submit(struct readers *readers, struct reader_job *job);

#endif
