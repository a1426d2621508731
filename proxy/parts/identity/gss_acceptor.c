#include "identity/gss_acceptor.h"

#include "base/assert.h"

#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <krb5.h>
#include <stdio.h>

struct gss_acceptor {
    unsigned magic;
#define GSS_ACCEPTOR_MAGIC 0x67737361u
    char *keytab; /* NULL: the system's */
    gss_cred_id_t credentials;
};

/* Writes what the library says about a failure. */
static void gss_acceptor_explain(OM_uint32 major, OM_uint32 minor, char *out, size_t size) {
    OM_uint32 ignored, more = 0;
    gss_buffer_desc text;
    int type = minor != 0 ? GSS_C_MECH_CODE : GSS_C_GSS_CODE;
    if (gss_display_status(&ignored, minor != 0 ? minor : major, type, GSS_C_NO_OID, &more,
                           &text) != GSS_S_COMPLETE) {
        snprintf(out, size, "GSSAPI error %u/%u", major, minor);
        return;
    }
    snprintf(out, size, "%.*s", (int)text.length, (const char *)text.value);
    gss_release_buffer(&ignored, &text);
}

bool gss_acceptor_is_built(void) {
    return true;
}

static OM_uint32 gss_acceptor_import(const char *principal, gss_name_t *name, OM_uint32 *minor) {
    gss_buffer_desc text = {.length = strlen(principal), .value = (void *)principal};
    return gss_import_name(minor, &text, (gss_OID)GSS_KRB5_NT_PRINCIPAL_NAME, name);
}

static OM_uint32 gss_acceptor_acquire(const struct gss_acceptor *acceptor, const char *principal,
                                      gss_cred_id_t *credentials, OM_uint32 *minor) {
    gss_key_value_element_desc element = {.key = "keytab", .value = acceptor->keytab};
    gss_key_value_set_desc store = {.count = acceptor->keytab != NULL ? 1 : 0,
                                    .elements = &element};
    gss_name_t name = GSS_C_NO_NAME;
    OM_uint32 ignored;
    if (principal != NULL) {
        OM_uint32 major = gss_acceptor_import(principal, &name, minor);
        if (GSS_ERROR(major))
            return major;
    }
    OM_uint32 major = gss_acquire_cred_from(minor, name, GSS_C_INDEFINITE, GSS_C_NO_OID_SET,
                                            GSS_C_ACCEPT, &store, credentials, NULL, NULL);
    gss_release_name(&ignored, &name);
    return major;
}

/* Is the keytab still there, with a key? The codes of gss_accept_sec_context do not tell: the
 * library replaces those of the system by others. No principal is asked for, because libkrb5 1.20
 * loses the memory of its name when there is no keytab. */
static bool gss_acceptor_has_keys(const struct gss_acceptor *acceptor) {
    gss_cred_id_t credentials = GSS_C_NO_CREDENTIAL;
    OM_uint32 minor, ignored;
    bool has = !GSS_ERROR(gss_acceptor_acquire(acceptor, NULL, &credentials, &minor));
    gss_release_cred(&ignored, &credentials);
    return has;
}

struct gss_acceptor *gss_acceptor_new(const char *keytab, const char *principal, char *error,
                                      size_t error_size) {
    struct gss_acceptor *acceptor;
    OM_uint32 minor = 0;
    char why[GSS_WHY_MAX];
    ALLOC_OBJ(acceptor, GSS_ACCEPTOR_MAGIC);
    acceptor->credentials = GSS_C_NO_CREDENTIAL;
    acceptor->keytab = keytab != NULL ? xstrdup(keytab) : NULL;
    OM_uint32 major = gss_acceptor_acquire(acceptor, principal, &acceptor->credentials, &minor);
    if (!GSS_ERROR(major))
        return acceptor;
    gss_acceptor_explain(major, minor, why, sizeof why);
    snprintf(error, error_size,
             "keytab \"%s\" has no key for %s: %s; write it with kadmin: ktadd -k FILE "
             "HTTP/proxy.example.com, and let the user of retort read it",
             keytab != NULL ? keytab : "of the system", principal != NULL ? principal : "anything",
             why);
    gss_acceptor_free(&acceptor);
    return NULL;
}

void gss_acceptor_free(struct gss_acceptor **acceptorp) {
    struct gss_acceptor *acceptor = *acceptorp;
    OM_uint32 minor;
    *acceptorp = NULL;
    if (acceptor == NULL)
        return;
    CHECK_OBJ(acceptor, GSS_ACCEPTOR_MAGIC);
    gss_release_cred(&minor, &acceptor->credentials);
    free(acceptor->keytab);
    FREE_OBJ(acceptor);
}

/* ---- tokens ------------------------------------------------------------------------------- */

static void gss_acceptor_fail(const struct gss_acceptor *acceptor, struct gss_verdict *verdict,
                              OM_uint32 major, OM_uint32 minor) {
    gss_acceptor_explain(major, minor, verdict->why, sizeof verdict->why);
    switch ((krb5_error_code)minor) {
    case KRB5KRB_AP_ERR_REPEAT: verdict->reason = "the Kerberos ticket was shown before"; return;
    case KRB5KRB_AP_ERR_SKEW:
        verdict->reason = "the clocks of the client and of this machine differ too much";
        return;
    case KRB5KRB_AP_ERR_TKT_EXPIRED: verdict->reason = "the Kerberos ticket has expired"; return;
    case KRB5_KT_NOTFOUND:
    case KRB5_KT_KVNONOTFOUND:
    case KRB5KRB_AP_ERR_NOKEY:
    case KRB5KRB_AP_WRONG_PRINC:
    case KRB5KRB_AP_ERR_BADKEYVER:
        verdict->reason = "the keytab has no key for this Kerberos ticket";
        return;
    case KRB5_RC_IO:
    case KRB5_RC_IO_PERM:
    case KRB5_RC_IO_IO:
    case KRB5_RC_IO_SPACE:
    case KRB5_RC_IO_UNKNOWN:
    case KRB5_RC_MALLOC:
        verdict->kind = GSS_UNABLE;
        verdict->reason = "the replay cache of Kerberos can not be used";
        return;
    default: verdict->reason = "the Kerberos token is not valid"; break;
    }
    if (gss_acceptor_has_keys(acceptor))
        return;
    verdict->kind = GSS_UNABLE;
    verdict->reason = "the keytab can not be used";
}

/* Copies a name as text. False: it does not fit, or has a NUL. */
static bool gss_acceptor_copy_name(gss_name_t name, char out[GSS_NAME_MAX]) {
    OM_uint32 minor;
    gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
    if (name == GSS_C_NO_NAME || GSS_ERROR(gss_display_name(&minor, name, &text, NULL)))
        return false;
    bool fits =
        text.length > 0 && text.length < GSS_NAME_MAX && memchr(text.value, 0, text.length) == NULL;
    if (fits)
        memcpy(out, text.value, text.length);
    out[fits ? text.length : 0] = '\0';
    gss_release_buffer(&minor, &text);
    return fits;
}

/* The realm of our own principal: what stands behind its last "@". */
static void gss_acceptor_note_realm(gss_ctx_id_t context, struct gss_verdict *verdict) {
    OM_uint32 minor;
    gss_name_t own = GSS_C_NO_NAME;
    char text[GSS_NAME_MAX];
    verdict->realm[0] = '\0';
    if (GSS_ERROR(gss_inquire_context(&minor, context, NULL, &own, NULL, NULL, NULL, NULL, NULL)))
        return;
    if (gss_acceptor_copy_name(own, text)) {
        const char *at = strrchr(text, '@');
        snprintf(verdict->realm, sizeof verdict->realm, "%s", at != NULL ? at + 1 : "");
    }
    gss_release_name(&minor, &own);
}

static void gss_acceptor_accept_name(gss_ctx_id_t context, gss_name_t name, OM_uint32 flags,
                                     struct gss_verdict *verdict) {
    if ((flags & GSS_C_ANON_FLAG) != 0 || !gss_acceptor_copy_name(name, verdict->name)) {
        verdict->kind = GSS_REFUSED;
        verdict->reason = "the Kerberos ticket names nobody";
        return;
    }
    verdict->kind = GSS_PROVEN;
    gss_acceptor_note_realm(context, verdict);
}

static void gss_acceptor_keep_answer(struct gss_verdict *verdict, const gss_buffer_desc *answer) {
    if (verdict->kind != GSS_PROVEN || answer->length == 0)
        return;
    verdict->answer = xmalloc(answer->length);
    memcpy(verdict->answer, answer->value, answer->length);
    verdict->answer_length = answer->length;
}

void gss_acceptor_take(struct gss_acceptor *acceptor, struct slice token,
                       struct gss_verdict *verdict) {
    static const char ntlm[] = "NTLMSSP";
    gss_buffer_desc input = {.length = token.length, .value = (void *)token.base};
    gss_buffer_desc answer = GSS_C_EMPTY_BUFFER;
    gss_ctx_id_t context = GSS_C_NO_CONTEXT;
    gss_name_t name = GSS_C_NO_NAME;
    OM_uint32 minor = 0, flags = 0, ignored;
    CHECK_OBJ(acceptor, GSS_ACCEPTOR_MAGIC);
    *verdict = (struct gss_verdict){.kind = GSS_REFUSED};
    if (memmem(token.base, token.length, ntlm, sizeof ntlm) != NULL) {
        verdict->reason = "the client sends NTLM: it has no Kerberos ticket for this proxy";
        return;
    }
    OM_uint32 major =
        gss_accept_sec_context(&minor, &context, acceptor->credentials, &input,
                               GSS_C_NO_CHANNEL_BINDINGS, &name, NULL, &answer, &flags, NULL, NULL);
    if (GSS_ERROR(major))
        gss_acceptor_fail(acceptor, verdict, major, minor);
    else if (major & GSS_S_CONTINUE_NEEDED)
        verdict->reason = "the client's token does not carry a Kerberos ticket";
    else
        gss_acceptor_accept_name(context, name, flags, verdict);
    gss_acceptor_keep_answer(verdict, &answer);
    gss_release_buffer(&ignored, &answer);
    gss_release_name(&ignored, &name);
    gss_delete_sec_context(&ignored, &context, GSS_C_NO_BUFFER);
}

void gss_verdict_release(struct gss_verdict *verdict) {
    free(verdict->answer);
    verdict->answer = NULL;
}
