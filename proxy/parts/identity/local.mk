if PART_IDENTITY
proxy_libproxy_a_SOURCES += \
	proxy/parts/identity/part.c \
	proxy/parts/identity/attempts.c proxy/parts/identity/attempts.h \
	proxy/parts/identity/authentication.c proxy/parts/identity/authentication.h \
	proxy/parts/identity/authenticator.c proxy/parts/identity/authenticator.h \
	proxy/parts/identity/authenticator_settings.h \
	proxy/parts/identity/authorization.c proxy/parts/identity/authorization.h \
	proxy/parts/identity/credentials_check.c proxy/parts/identity/credentials_check.h \
	proxy/parts/identity/digest_rows.c proxy/parts/identity/digest_rows.h \
	proxy/parts/identity/helper_groups.c proxy/parts/identity/helper_groups.h \
	proxy/parts/identity/helper_question.c proxy/parts/identity/helper_question.h \
	proxy/parts/identity/htpasswd.c proxy/parts/identity/htpasswd.h \
	proxy/parts/identity/identity_method.h \
	proxy/parts/identity/jwt.c proxy/parts/identity/jwt.h \
	proxy/parts/identity/jwt_keys.c proxy/parts/identity/jwt_keys.h \
	proxy/parts/identity/method_basic_file.c \
	proxy/parts/identity/method_basic_helper.c \
	proxy/parts/identity/method_bearer.c \
	proxy/parts/identity/method_certificate.c \
	proxy/parts/identity/method_negotiate.c \
	proxy/parts/identity/options.def \
	proxy/parts/identity/options_helpers.def \
	proxy/parts/identity/password_hash.c proxy/parts/identity/password_hash.h \
	proxy/parts/identity/remembered.c proxy/parts/identity/remembered.h \
	proxy/parts/identity/settings.c proxy/parts/identity/settings.h \
	proxy/parts/identity/settings_helpers.c \
	proxy/parts/identity/gss_acceptor.h
if GSSAPI
proxy_libproxy_a_SOURCES += proxy/parts/identity/gss_acceptor.c
else
proxy_libproxy_a_SOURCES += proxy/parts/identity/gss_acceptor_none.c
endif
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_access_rules.c tests/unit/proxy/test_authentication.c
endif
EXTRA_DIST += proxy/parts/identity/gss_acceptor.c proxy/parts/identity/gss_acceptor_none.c
