if PART_INTERCEPT
proxy_libproxy_a_SOURCES += \
	proxy/parts/intercept/part.c \
	proxy/parts/intercept/bump.c proxy/parts/intercept/bump.h \
	proxy/parts/intercept/intercept.c proxy/parts/intercept/intercept.h \
	proxy/parts/intercept/interception.c proxy/parts/intercept/interception.h \
	proxy/parts/intercept/leaf.c proxy/parts/intercept/leaf.h \
	proxy/parts/intercept/leaf_cache.c proxy/parts/intercept/leaf_cache.h \
	proxy/parts/intercept/leaf_keys.c proxy/parts/intercept/leaf_keys.h \
	proxy/parts/intercept/origin_proof.c proxy/parts/intercept/origin_proof.h \
	proxy/parts/intercept/refusals.c proxy/parts/intercept/refusals.h \
	proxy/parts/intercept/server_identity.c proxy/parts/intercept/server_identity.h \
	proxy/parts/intercept/settings.c proxy/parts/intercept/settings.h
tests_unit_proxy_unit_proxy_SOURCES += \
	tests/unit/proxy/test_intercept_rules.c \
	tests/unit/proxy/test_leaf.c \
	tests/unit/proxy/test_refusals.c \
	tests/unit/proxy/test_server_identity.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/intercept/pages.c
endif
endif
