/*
 * How an attempt to read or write ended.
 *
 *     IO_DONE    some bytes
 *     IO_WAIT    none yet: the loop reports when another attempt is worth it
 *     IO_END     the other side has finished
 *     IO_FAILED  errno says why
 */
#ifndef RETORT_EVENT_IO_H
#define RETORT_EVENT_IO_H

enum io_status { IO_DONE, IO_WAIT, IO_END, IO_FAILED };

#endif
