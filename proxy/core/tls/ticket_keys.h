/*
 * The keys that protect session tickets (RFC 5077, RFC 8446 §4.6.1). All workers and all snapshots
 * of the settings use the same ones, so a ticket is good at every worker and after a reload.
 *
 *     struct ticket_keys *keys = ticket_keys_new(now);
 *     ticket_keys_use(keys, now, name, iv, cipher, mac, 1);        for a new ticket
 *     switch (ticket_keys_use(keys, now, name, iv, cipher, mac, 0)) ...
 *     ticket_keys_release(&keys);
 *
 * A key protects new tickets for an hour, and opens them for two more hours. Then it is gone, and
 * who records traffic today can't get at it later. Keys stand in memory only, and are wiped. A
 * restart makes new ones: clients then do a whole handshake.
 *
 * Threads: any; a lock is held while a key is copied. The reference count is atomic.
 */
#ifndef RETORT_TLS_TICKET_KEYS_H
#define RETORT_TLS_TICKET_KEYS_H

#include <openssl/evp.h>
#include <stdint.h>

/* In seconds: how long a key protects new tickets, and how long any ticket is good. */
enum { TICKET_KEYS_PERIOD = 3600, TICKET_KEYS_LIFETIME = 2 * TICKET_KEYS_PERIOD };
enum { TICKET_KEYS_NAME = 16, TICKET_KEYS_IV = 16 };

struct ticket_keys;

/* `now` is in seconds, here and below, of a clock that never goes back and counts sleep of the
 * machine (CLOCK_BOOTTIME). */
struct ticket_keys *ticket_keys_new(int64_t now);
struct ticket_keys *ticket_keys_reference(struct ticket_keys *keys);
void ticket_keys_release(struct ticket_keys **keysp);
/* As SSL_CTX_set_tlsext_ticket_key_evp_cb(3) wants it. With `protect`, writes the name of the
 * current key and an IV, and sets both contexts. Without, sets them for the key of that name.
 * Returns 1; 2: set, and the client should get a ticket of a newer key; 0: the key is unknown;
 * -1: OpenSSL has failed. */
int ticket_keys_use(struct ticket_keys *keys, int64_t now, unsigned char name[TICKET_KEYS_NAME],
                    unsigned char iv[TICKET_KEYS_IV], EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                    int protect);

#endif
