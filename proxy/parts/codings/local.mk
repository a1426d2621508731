if PART_CODINGS
proxy_libproxy_a_SOURCES += proxy/parts/codings/part.c
endif
