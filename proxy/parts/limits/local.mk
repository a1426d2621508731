if PART_LIMITS
proxy_libproxy_a_SOURCES += \
	proxy/parts/limits/part.c proxy/parts/limits/settings.c proxy/parts/limits/settings.h \
	proxy/parts/limits/bucket.c proxy/parts/limits/bucket.h \
	proxy/parts/limits/counter.c \
	proxy/parts/limits/limit_table.c proxy/parts/limits/limit_table.h \
	proxy/parts/limits/limits.c proxy/parts/limits/limits.h \
	proxy/parts/limits/step.c proxy/parts/limits/step.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_limit_table.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/limits/pages.c
endif
endif
