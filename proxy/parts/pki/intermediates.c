#include "pki/intermediates.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/slice.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs7.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A fetch that was not even tried is not remembered for longer than those who wait need. */
enum { KNOWN_SECONDS = 86400, FAILED_SECONDS = 60, UNTRIED_SECONDS = 2 };

/* What is known of one URL. */
struct intermediates_entry {
    unsigned magic;
#define INTERMEDIATES_ENTRY_MAGIC 0x147e4ed1u
    struct list_link link; /* the one used last is the last */
    char *url;
    bool fetching;
    struct list_link waiting;
    enum intermediates_state state;
    struct intermediates_found found;
    time_t until; /* of the monotonic clock */
};

static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link entries = {&entries, &entries};
static unsigned entry_count;

static time_t intermediates_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

static void intermediates_drop(struct intermediates_entry *entry) {
    CHECK_OBJ(entry, INTERMEDIATES_ENTRY_MAGIC);
    list_remove(&entry->link);
    entry_count--;
    sk_X509_pop_free(entry->found.certificates, X509_free);
    free(entry->url);
    FREE_OBJ(entry);
}

void intermediates_drop_all(void) {
    struct list_link *link;
    while ((link = list_first(&entries)) != NULL)
        intermediates_drop(CONTAINER_OF(link, struct intermediates_entry, link));
}

/* The list is short, and is searched only for servers that do not send their intermediates. */
static struct intermediates_entry *intermediates_seek(const char *url) {
    for (struct list_link *link = entries.next; link != &entries; link = link->next) {
        struct intermediates_entry *entry = CONTAINER_OF(link, struct intermediates_entry, link);
        if (strcmp(entry->url, url) == 0)
            return entry;
    }
    return NULL;
}

/* Removes the entry that was used longest ago, unless it is being fetched. */
static void intermediates_make_room(void) {
    for (struct list_link *link = entries.next; link != &entries; link = link->next) {
        struct intermediates_entry *entry = CONTAINER_OF(link, struct intermediates_entry, link);
        if (!entry->fetching) {
            intermediates_drop(entry);
            return;
        }
    }
}

static struct intermediates_entry *intermediates_add(const char *url) {
    struct intermediates_entry *entry;
    if (entry_count >= INTERMEDIATES_KEPT)
        intermediates_make_room();
    ALLOC_OBJ(entry, INTERMEDIATES_ENTRY_MAGIC);
    entry->url = xstrdup(url);
    list_init(&entry->waiting);
    list_append(&entries, &entry->link);
    entry_count++;
    return entry;
}

static struct stack_st_X509 *intermediates_reference(const STACK_OF(X509) * certificates) {
    return certificates != NULL ? X509_chain_up_ref((STACK_OF(X509) *)certificates) : NULL;
}

enum intermediates_state intermediates_find(const char *url, struct intermediates_found *found) {
    enum intermediates_state state = INTERMEDIATES_UNKNOWN;
    pthread_mutex_lock(&entries_lock);
    struct intermediates_entry *entry = intermediates_seek(url);
    if (entry != NULL && entry->until > intermediates_now()) {
        state = entry->state;
        *found = entry->found;
        found->certificates = intermediates_reference(entry->found.certificates);
        list_remove(&entry->link);
        list_append(&entries, &entry->link);
    }
    pthread_mutex_unlock(&entries_lock);
    return state;
}

bool intermediates_await(const char *url, struct waiter **waiter, struct mailbox *mailbox,
                         struct task *task) {
    pthread_mutex_lock(&entries_lock);
    struct intermediates_entry *entry = intermediates_seek(url);
    if (entry == NULL)
        entry = intermediates_add(url);
    bool first = !entry->fetching;
    entry->fetching = true;
    waiter_add(&entry->waiting, waiter, mailbox, task);
    pthread_mutex_unlock(&entries_lock);
    return first;
}

void intermediates_forget(struct waiter **waiter) {
    waiter_cancel(waiter, &entries_lock);
}

void intermediates_put(const char *url, const STACK_OF(X509) * certificates, unsigned hops,
                       const char *error, const struct loop *loop) {
    pthread_mutex_lock(&entries_lock);
    struct intermediates_entry *entry = intermediates_seek(url);
    ASSERT(entry != NULL && entry->fetching); /* entries that are fetched stay */
    sk_X509_pop_free(entry->found.certificates, X509_free);
    entry->found.certificates = intermediates_reference(certificates);
    entry->found.hops = hops;
    entry->state = certificates != NULL ? INTERMEDIATES_KNOWN : INTERMEDIATES_FAILED;
    entry->until = intermediates_now() + (certificates != NULL ? KNOWN_SECONDS
                                          : hops > 0           ? FAILED_SECONDS
                                                               : UNTRIED_SECONDS);
    snprintf(entry->found.error, sizeof entry->found.error, "%s", error != NULL ? error : "");
    entry->fetching = false;
    waiters_wake(&entry->waiting, loop);
    pthread_mutex_unlock(&entries_lock);
}

static bool aia_is_usable(const ASN1_IA5STRING *url) {
    static const char scheme[] = "http://";
    const char *text = (const char *)ASN1_STRING_get0_data(url);
    size_t length = (size_t)ASN1_STRING_length(url);
    if (length <= strlen(scheme) || length > AIA_URL_MOST ||
        strncasecmp(text, scheme, strlen(scheme)) != 0)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f)
            return false;
    return true;
}

char *aia_issuer_url(const X509 *certificate) {
    AUTHORITY_INFO_ACCESS *list = X509_get_ext_d2i(certificate, NID_info_access, NULL, NULL);
    char *found = NULL;
    for (int i = 0; found == NULL && i < sk_ACCESS_DESCRIPTION_num(list); i++) {
        const ACCESS_DESCRIPTION *access = sk_ACCESS_DESCRIPTION_value(list, i);
        const GENERAL_NAME *location = access->location;
        if (OBJ_obj2nid(access->method) == NID_ad_ca_issuers && location->type == GEN_URI &&
            aia_is_usable(location->d.uniformResourceIdentifier))
            found = slice_dup(slice_make(
                (const char *)ASN1_STRING_get0_data(location->d.uniformResourceIdentifier),
                (size_t)ASN1_STRING_length(location->d.uniformResourceIdentifier)));
    }
    AUTHORITY_INFO_ACCESS_free(list);
    return found;
}

/* Takes its own reference; NULL is ignored. */
static void aia_add(STACK_OF(X509) * found, X509 *certificate) {
    if (certificate != NULL && sk_X509_num(found) < AIA_CERTIFICATES_MOST &&
        X509_up_ref(certificate) == 1)
        sk_X509_push(found, certificate);
}

static void aia_add_container(STACK_OF(X509) * found, PKCS7 *container) {
    STACK_OF(X509) *list = NULL;
    if (container != NULL && PKCS7_type_is_signed(container) && container->d.sign != NULL)
        list = container->d.sign->cert;
    for (int i = 0; i < sk_X509_num(list); i++)
        aia_add(found, sk_X509_value(list, i));
    PKCS7_free(container);
}

static void aia_parse_der(STACK_OF(X509) * found, const unsigned char *bytes, size_t length) {
    const unsigned char *at = bytes;
    X509 *certificate = d2i_X509(NULL, &at, (long)length);
    aia_add(found, certificate);
    X509_free(certificate);
    at = bytes;
    if (certificate == NULL)
        aia_add_container(found, d2i_PKCS7(NULL, &at, (long)length));
}

static void aia_parse_pem(STACK_OF(X509) * found, const unsigned char *bytes, size_t length) {
    BIO *bio = BIO_new_mem_buf(bytes, (int)length);
    char *name, *header;
    unsigned char *der;
    long size;
    while (bio != NULL && PEM_read_bio(bio, &name, &header, &der, &size) == 1) {
        if (strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0 ||
            strcmp(name, PEM_STRING_PKCS7) == 0)
            aia_parse_der(found, der, (size_t)size);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_free(der);
    }
    BIO_free(bio);
}

struct stack_st_X509 *aia_parse(const unsigned char *bytes, size_t length) {
    static const char pem[] = "-----BEGIN ";
    STACK_OF(X509) *found = sk_X509_new_null();
    if (found == NULL || length > AIA_BYTES_MOST)
        goto none;
    ERR_set_mark();
    if (memmem(bytes, length, pem, strlen(pem)) != NULL)
        aia_parse_pem(found, bytes, length);
    else
        aia_parse_der(found, bytes, length);
    ERR_pop_to_mark();
    if (sk_X509_num(found) > 0)
        return found;
none:
    sk_X509_free(found);
    return NULL;
}
