/*
 * The terms of a class's conditions: what rules (match/rules.h) file a class under, so that a
 * look-up of a part of a request finds the class. Inside match/.
 *
 *     for (int i = 0; i < CONDITIONS; i++)
 *         if (class_terms_each(url_class, (enum class_condition)i, on_term, arg)) ...
 *
 * A request that fits the class has one of the terms of each condition that the class states.
 *
 * Threads: any; classes are only read.
 */
#ifndef RETORT_MATCH_CLASS_TERMS_H
#define RETORT_MATCH_CLASS_TERMS_H

#include "match/url_class.h"

#include <arpa/inet.h>
#include <string.h>

/* The tables in which the terms of classes are filed. */
enum class_place {
    PLACE_HOSTS,    /* names */
    PLACE_BELOW,    /* names; a term stands for all names below it */
    PLACE_CLIENTS,  /* networks, see class_terms_client_key */
    PLACE_IN_PATHS, /* texts that occur in a path */
    PLACE_IN_URLS,  /* texts that occur in a URL */
    PLACE_USERS,
    PLACE_GROUPS,
    PLACE_METHODS,   /* in lower case */
    PLACE_PORTS,     /* two bytes */
    PLACE_LISTENERS, /* in lower case */
    /* Pointers to lists, each of which a search asks once. */
    PLACE_HOST_LISTS,
    PLACE_CLIENT_LISTS,
    PLACE_URL_LISTS,
    PLACES,
};

/* The conditions that a class may be filed under, the cheapest first. Those from LAST_RESORTS on
 * are for classes without another one, since many requests have the same method and port. */
enum class_condition {
    BY_HOST,
    BY_DOMAIN,
    BY_CLIENT,
    BY_PATH,
    BY_URL,
    BY_USER,
    BY_GROUP,
    BY_URL_FILE,
    LAST_RESORTS,
    BY_METHOD = LAST_RESORTS,
    BY_PORT,
    BY_LISTENER,
    BY_ANY_OF,
    CONDITIONS
};

enum {
    CLASS_TERMS_CLIENT_KEY = 18,
    CLASS_TERMS_WORD = 64, /* the longest term of a method or a listener */
};

typedef void class_terms_fn(void *arg, enum class_place place, struct slice term);

/* Calls `visit` for each term of the condition. False: the class can not be filed under it. */
bool class_terms_each(const struct url_class *url_class, enum class_condition condition,
                      class_terms_fn *visit, void *arg);

/* The bytes of the address stand at the end of the key, where the filter of a table looks. */
static inline void class_terms_client_key(const struct network *network,
                                          char key[CLASS_TERMS_CLIENT_KEY]) {
    size_t length = network->v6 ? 16 : 4;
    memset(key, 0, CLASS_TERMS_CLIENT_KEY);
    key[0] = (char)network->v6;
    key[1] = (char)network->bits;
    memcpy(key + CLASS_TERMS_CLIENT_KEY - length, network->prefix, length);
}

/* The same for the block of `bits` bits around an address of IPv4. */
static inline void class_terms_client_key_of_v4(uint32_t address, unsigned bits,
                                                char key[CLASS_TERMS_CLIENT_KEY]) {
    uint32_t prefix = htonl(bits == 0 ? 0 : address & ~UINT32_C(0) << (32 - bits));
    memset(key, 0, CLASS_TERMS_CLIENT_KEY);
    key[1] = (char)bits;
    memcpy(key + CLASS_TERMS_CLIENT_KEY - sizeof prefix, &prefix, sizeof prefix);
}

#endif
