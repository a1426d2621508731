/*
 * The names and addresses of a hosts file (hosts(5)), such as /etc/hosts.
 *
 *     struct hosts_file *hosts = hosts_file_new("/etc/hosts");
 *     hosts_file_refresh(hosts, now);                  reads the file again if it has changed
 *     if (hosts_file_find(hosts, name, found)) ...     name: lower case, without dots at the end
 *
 * The file is looked at once a second at most. One that can't be read leaves the former names in
 * force, and one that is missing has no names. Lines that are none are skipped.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_NET_HOSTS_FILE_H
#define RETORT_NET_HOSTS_FILE_H

#include "net/address.h"

enum { HOSTS_FILE_ADDRESSES = 8, HOSTS_FILE_MAX = 64 * 1024 * 1024 };

struct hosts_file;

/* NULL: no file, hence no names. */
struct hosts_file *hosts_file_new(const char *path);
void hosts_file_free(struct hosts_file **hostsp);
void hosts_file_refresh(struct hosts_file *hosts, uint64_t now);
/* Writes at most HOSTS_FILE_ADDRESSES addresses with port 0. Returns how many; 0: there is no such
 * name. */
unsigned hosts_file_find(const struct hosts_file *hosts, struct slice name,
                         struct address found[HOSTS_FILE_ADDRESSES]);

#endif
