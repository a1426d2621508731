if PART_REWRITE
proxy_libproxy_a_SOURCES += \
	proxy/parts/rewrite/part.c \
	proxy/parts/rewrite/settings.c proxy/parts/rewrite/settings.h proxy/parts/rewrite/options.def \
	proxy/parts/rewrite/field_rules.c proxy/parts/rewrite/field_rules.h \
	proxy/parts/rewrite/head_rules.c proxy/parts/rewrite/head_rules.h \
	proxy/parts/rewrite/step.c \
	proxy/parts/rewrite/url_rules.c proxy/parts/rewrite/url_rules.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_field_rules.c
endif
