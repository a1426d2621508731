if PART_HTTP2
proxy_libproxy_a_SOURCES += \
	proxy/parts/http2/part.c \
	proxy/parts/http2/block.c proxy/parts/http2/block.h \
	proxy/parts/http2/client/connection.c proxy/parts/http2/client/connection.h \
	proxy/parts/http2/client/exchange.c proxy/parts/http2/client/exchange.h \
	proxy/parts/http2/client/head_blocks.c proxy/parts/http2/client/head_blocks.h \
	proxy/parts/http2/client/http2.h \
	proxy/parts/http2/client/reply.c proxy/parts/http2/client/reply.h \
	proxy/parts/http2/client/request_body.c proxy/parts/http2/client/request_body.h \
	proxy/parts/http2/client/tunnel.c proxy/parts/http2/client/tunnel.h \
	proxy/parts/http2/closed.c proxy/parts/http2/closed.h \
	proxy/parts/http2/fields.c proxy/parts/http2/fields.h \
	proxy/parts/http2/frame.c proxy/parts/http2/frame.h \
	proxy/parts/http2/hpack.c proxy/parts/http2/hpack.h \
	proxy/parts/http2/hpack_encode.c proxy/parts/http2/hpack_encode.h \
	proxy/parts/http2/hpack_static.c proxy/parts/http2/hpack_static.def proxy/parts/http2/hpack_static.h \
	proxy/parts/http2/huffman.c proxy/parts/http2/huffman.def proxy/parts/http2/huffman.h \
	proxy/parts/http2/input.c proxy/parts/http2/input.h \
	proxy/parts/http2/origin/call.c proxy/parts/http2/origin/call.h \
	proxy/parts/http2/origin/carrier.c proxy/parts/http2/origin/carrier.h \
	proxy/parts/http2/origin/http2.h \
	proxy/parts/http2/outbox.c proxy/parts/http2/outbox.h \
	proxy/parts/http2/schedule.c proxy/parts/http2/schedule.h \
	proxy/parts/http2/session.c proxy/parts/http2/session.h \
	proxy/parts/http2/settings.c proxy/parts/http2/settings.h \
	proxy/parts/http2/stream.c proxy/parts/http2/stream.h
tests_unit_proxy_unit_proxy_SOURCES += \
	tests/unit/proxy/http2_lab.c tests/unit/proxy/http2_lab.h \
	tests/unit/proxy/test_head_blocks.c \
	tests/unit/proxy/test_hpack.c \
	tests/unit/proxy/test_http2_block.c \
	tests/unit/proxy/test_http2_budget.c \
	tests/unit/proxy/test_http2_chance.c \
	tests/unit/proxy/test_http2_closed.c \
	tests/unit/proxy/test_http2_fields.c \
	tests/unit/proxy/test_http2_frame.c \
	tests/unit/proxy/test_http2_replies.c \
	tests/unit/proxy/test_http2_session.c \
	tests/unit/proxy/test_http2_uploads.c
endif
