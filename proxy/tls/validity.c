#include "tls/validity.h"

#include "tls/certificate_text.h"

static void validity_add(struct validity *validity, int64_t ends, const X509_NAME *name) {
    if (validity->name == NULL || ends < validity->ends)
        *validity = (struct validity){ends, name};
}

void validity_add_certificate(struct validity *validity, const X509 *certificate) {
    validity_add(validity, certificate_text_expiry(certificate),
                 X509_get_subject_name(certificate));
}

void validity_add_certificates(struct validity *validity,
                               const struct stack_st_X509 *certificates) {
    for (int i = 0; i < sk_X509_num(certificates); i++)
        validity_add_certificate(validity, sk_X509_value(certificates, i));
}

void validity_add_lists(struct validity *validity, const struct stack_st_X509_CRL *lists) {
    for (int i = 0; i < sk_X509_CRL_num(lists); i++) {
        const X509_CRL *list = sk_X509_CRL_value(lists, i);
        if (X509_CRL_get0_nextUpdate(list) != NULL)
            validity_add(validity, certificate_text_list_end(list), X509_CRL_get_issuer(list));
    }
}
