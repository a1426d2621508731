if PART_PKI
proxy_libproxy_a_SOURCES += \
	proxy/parts/pki/part.c \
	proxy/parts/pki/fetches.c proxy/parts/pki/fetches.h \
	proxy/parts/pki/intermediates.c proxy/parts/pki/intermediates.h \
	proxy/parts/pki/small_fetch.c proxy/parts/pki/small_fetch.h \
	proxy/parts/pki/staple.c proxy/parts/pki/staple.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_pki.c
endif
