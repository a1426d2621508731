#include "adapt/adapter_account.h"

const struct adapter_account_description adapter_account_numbers[] = {
#define ACCOUNT(name, help) {#name, help, offsetof(struct adapter_account, name)},
#include "adapt/adapter_account.def"
#undef ACCOUNT
    {NULL, NULL, 0},
};

const struct adapter_account_description adapter_account_times[] = {
    {"queue_seconds",
     "Seconds that requests waited for a connection, for OPTIONS, or for max_messages.",
     offsetof(struct adapter_account, queue)},
    {"verdict_seconds", "Seconds from the request to the verdict.",
     offsetof(struct adapter_account, to_verdict)},
    {"last_byte_seconds", "Seconds from the request to the last byte of the answer.",
     offsetof(struct adapter_account, to_last_byte)},
    {NULL, NULL, 0},
};

void adapter_account_add(struct adapter_account *sum, const struct adapter_account *account) {
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)account;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}
