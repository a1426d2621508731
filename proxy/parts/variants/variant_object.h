/*
 * The object that an adapted variant (variants/adapted_variant.h) is stored as: its selector,
 * its head and how long it is fresh. Nothing of the transaction is changed here.
 *
 *     variant_object_set_validator(transaction, head, &provenance);
 *     variant_object_keep_tags(transaction, head);
 *     bool storable = variant_object_freshness(transaction, head, &freshness);
 *     object = variant_object_new(transaction, head, OBJECT_MADE, &freshness, body);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_VARIANTS_VARIANT_OBJECT_H
#define RETORT_VARIANTS_VARIANT_OBJECT_H

#include "transaction/transaction.h"

/* The name that requests for the same variant share. It has all that is known before the variant is
 * made. It contains line ends, so that it can't be the name of a URL. */
struct cache_name variant_object_fetch_name(struct transaction *transaction);
/* Has `object` another Cache-Control than `of`, of which it was made? */
bool variant_object_has_other_control(struct transaction *transaction, const struct object *object,
                                      const struct object *of);
/* The same variant, after the origin has confirmed the response that it was made of. */
struct object *variant_object_renewed(struct transaction *transaction, const struct object *object,
                                      const struct object *of);
/* Gives the head a validator of its own: the stored response's stands for other bytes. It is weak,
 * since a service that is asked again may write other bytes. */
void variant_object_set_validator(struct transaction *transaction, struct http_head *head,
                                  const struct object_provenance *provenance);
/* The variant is purged by the same tags as what it was made of. */
void variant_object_keep_tags(struct transaction *transaction, struct http_head *head);
/* The stored response's freshness, unless a service has shortened its life. False: the variant must
 * not be stored. */
bool variant_object_freshness(struct transaction *transaction, const struct http_head *head,
                              struct freshness *freshness);
struct object *variant_object_new(struct transaction *transaction, const struct http_head *head,
                                  enum object_kind kind, const struct freshness *freshness,
                                  struct body *body);

#endif
