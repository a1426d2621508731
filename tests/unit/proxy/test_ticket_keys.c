/* Which session tickets can be opened, and for how long. */
#include "suites.h"

#include "tls/ticket_keys.h"

enum { START = 1000 * TICKET_KEYS_PERIOD + 5, SIZE = 64 };

struct ticket {
    unsigned char name[TICKET_KEYS_NAME], iv[TICKET_KEYS_IV];
    unsigned char bytes[SIZE], mac[32];
};

static const unsigned char secret[SIZE - 16] = "what the server wants to know again";

static int use(struct ticket_keys *keys, int64_t now, struct ticket *ticket, bool protect) {
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac);
    unsigned char bytes[SIZE], tag[32];
    int length = 0, more = 0;
    size_t tag_length = sizeof tag;
    int used = ticket_keys_use(keys, now, ticket->name, ticket->iv, cipher, mac, protect);
    if (used > 0 && protect) {
        ck_assert(EVP_EncryptUpdate(cipher, ticket->bytes, &length, secret, sizeof secret) == 1 &&
                  EVP_EncryptFinal_ex(cipher, ticket->bytes + length, &more) == 1);
        ck_assert_int_eq(length + more, SIZE);
    } else if (used > 0) {
        ck_assert(EVP_DecryptUpdate(cipher, bytes, &length, ticket->bytes, SIZE) == 1 &&
                  EVP_DecryptFinal_ex(cipher, bytes + length, &more) == 1);
        ck_assert_int_eq(memcmp(bytes, secret, sizeof secret), 0);
    }
    if (used > 0) {
        ck_assert(EVP_MAC_init(mac, NULL, 0, NULL) == 1 &&
                  EVP_MAC_update(mac, ticket->bytes, SIZE) == 1 &&
                  EVP_MAC_final(mac, tag, &tag_length, sizeof tag) == 1);
        if (protect)
            memcpy(ticket->mac, tag, sizeof tag);
        ck_assert_int_eq(memcmp(ticket->mac, tag, sizeof tag), 0);
    }
    EVP_CIPHER_CTX_free(cipher);
    EVP_MAC_CTX_free(mac);
    EVP_MAC_free(hmac);
    return used;
}

START_TEST(a_ticket_is_opened_for_two_periods_more) {
    struct ticket_keys *keys = ticket_keys_new(START);
    struct ticket first, second;
    ck_assert_int_eq(use(keys, START, &first, true), 1);
    ck_assert_int_eq(use(keys, START + 1, &first, false), 1);
    ck_assert_int_eq(use(keys, START + TICKET_KEYS_PERIOD, &first, false), 2);
    ck_assert_int_eq(use(keys, START + TICKET_KEYS_PERIOD, &second, true), 1);
    ck_assert_int_ne(memcmp(first.name, second.name, sizeof first.name), 0);
    ck_assert_int_eq(use(keys, START + TICKET_KEYS_LIFETIME, &first, false), 2);
    ck_assert_int_eq(use(keys, START + TICKET_KEYS_LIFETIME, &second, false), 2);
    ck_assert_int_eq(use(keys, START + 3 * TICKET_KEYS_PERIOD, &first, false), 0);
    ck_assert_int_eq(use(keys, START + 3 * TICKET_KEYS_PERIOD, &second, false), 2);
    ticket_keys_release(&keys);
}
END_TEST

START_TEST(after_a_long_pause_no_old_key_is_left) {
    struct ticket_keys *keys = ticket_keys_new(START);
    struct ticket ticket;
    ck_assert_int_eq(use(keys, START, &ticket, true), 1);
    ck_assert_int_eq(use(keys, START + 1000 * TICKET_KEYS_PERIOD, &ticket, false), 0);
    ck_assert_int_eq(use(keys, START + 1000 * TICKET_KEYS_PERIOD, &ticket, true), 1);
    ck_assert_int_eq(use(keys, START, &ticket, false), 1); /* a clock that goes back does no harm */
    ticket_keys_release(&keys);
}
END_TEST

START_TEST(names_that_were_never_given_open_nothing) {
    struct ticket_keys *keys = ticket_keys_new(START), *others = ticket_keys_new(START);
    struct ticket ticket = {.name = {0}};
    ck_assert_int_eq(use(keys, START, &ticket, false), 0);
    ck_assert_int_eq(use(keys, START + 2 * TICKET_KEYS_PERIOD, &ticket, false), 0);
    ck_assert_int_eq(use(others, START, &ticket, true), 1);
    ck_assert_int_eq(use(keys, START, &ticket, false), 0);
    ticket_keys_release(&keys);
    ticket_keys_release(&others);
}
END_TEST

Suite *ticket_keys_suite(void) {
    const TTest *const tests[] = {
        a_ticket_is_opened_for_two_periods_more,
        after_a_long_pause_no_old_key_is_left,
        names_that_were_never_given_open_nothing,
    };
    return suite_of("ticket_keys", tests, COUNT_OF(tests));
}
