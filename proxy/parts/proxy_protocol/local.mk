if PART_PROXY_PROTOCOL
proxy_libproxy_a_SOURCES += \
	proxy/parts/proxy_protocol/part.c \
	proxy/parts/proxy_protocol/header.c proxy/parts/proxy_protocol/header.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_proxy_header.c
endif
