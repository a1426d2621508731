"""gRPC through Retort: calls of a message, and streams in both directions, from Google's client to Google's server."""

import threading
from concurrent import futures

from harness import ports
from harness.certificates import Authority
from harness.checks import Skip, contains, equal, true, until
from harness.retort import Retort

try:
    import grpc
except ImportError:
    grpc = None

SERVICE = "lab.Echo"
SECONDS = 60
LARGE = 3_000_000


def share(lab):
    if grpc is None:
        raise Skip("python3-grpcio is missing: apt-get install python3-grpcio")
    root = Authority(lab)
    return {"leaf": root.leaf("127.0.0.1", "localhost"), "ca": root.file}


class EchoServer:
    """Messages are bytes. `said`: the messages that have come, with the number of the call."""

    def __init__(self, lab, leaf=None):
        self.gone, self.peers, self.said = threading.Event(), set(), []
        handlers = {
            "Once": grpc.unary_unary_rpc_method_handler(self.once),
            "Many": grpc.unary_stream_rpc_method_handler(self.many),
            "Sum": grpc.stream_unary_rpc_method_handler(self.sum),
            "Talk": grpc.stream_stream_rpc_method_handler(self.talk),
        }
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=60),
                                  options=[("grpc.max_receive_message_length", 2 * LARGE), ("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = ports.take()
        if leaf:
            with open(leaf.file, "rb") as certificate, open(leaf.key, "rb") as key:
                shown = grpc.ssl_server_credentials([(key.read(), certificate.read())])
            self.server.add_secure_port(f"127.0.0.1:{self.port}", shown)
        else:
            self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        self.server.start()
        lab.opens(self)

    def once(self, message, context):
        self.peers.add(context.peer())
        sent = dict(context.invocation_metadata())
        if message == b"fail":
            context.set_trailing_metadata((("x-trailer", "of a failure"),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no more")
        context.send_initial_metadata((("x-head", sent.get("x-sent", "")),))
        context.set_trailing_metadata((("x-trailer", "t"), ("x-trailer-bin", bytes(range(256)))))
        return message

    def many(self, message, context):
        context.add_callback(self.gone.set)
        for count in range(int(message)):
            yield b"%d" % count
        if message == b"3":
            return
        while context.is_active():
            yield b"more"

    def sum(self, messages, _context):
        return b"%d" % sum(len(message) for message in messages)

    def talk(self, messages, _context):
        for message in messages:
            self.said.append(message)
            yield b"heard " + message

    def stop(self):
        self.server.stop(0).wait(SECONDS)

    def findings(self):
        return []


class Calls:
    def __init__(self, lab, address, credentials=None):
        options = [("grpc.max_receive_message_length", 2 * LARGE)]
        self.channel = grpc.insecure_channel(address, options=options) if credentials is None else \
            grpc.secure_channel(address, credentials, options=options)
        lab.opens(self)
        self.once = self.channel.unary_unary(f"/{SERVICE}/Once")
        self.many = self.channel.unary_stream(f"/{SERVICE}/Many")
        self.sum = self.channel.stream_unary(f"/{SERVICE}/Sum")
        self.talk = self.channel.stream_stream(f"/{SERVICE}/Talk")

    def stop(self):
        self.channel.close()

    def findings(self):
        return []


def through(lab, **options):
    server = EchoServer(lab)
    proxy = Retort(lab, reverse={"/": "grpc/"},
                   extra=f'origins grpc {{ servers = {{ "http://127.0.0.1:{server.port}" }}  http2 = on }}', **options)
    return server, proxy, Calls(lab, f"127.0.0.1:{proxy.reverse[1]}")


def test_one_message_each_way(lab):
    _server, proxy, calls = through(lab)
    answer, call = calls.once.with_call(b"hello", metadata=(("x-sent", "s"),), timeout=SECONDS)
    equal(answer, b"hello", "answer")
    equal(dict(call.initial_metadata()).get("x-head"), "s", "a field of the head")
    trailers = dict(call.trailing_metadata())
    equal((trailers.get("x-trailer"), trailers.get("x-trailer-bin")), ("t", bytes(range(256))), "trailers")
    equal(calls.once(b"x" * LARGE, timeout=SECONDS), b"x" * LARGE, "a large message")
    equal((proxy.counter("origin_http2_requests"), proxy.counter("origin_http2_connections")), (2, 1), "requests and connections")


def test_failures_come_with_their_status(lab):
    _server, proxy, calls = through(lab)
    for call, status, words in ((lambda: calls.once(b"fail", timeout=SECONDS), grpc.StatusCode.RESOURCE_EXHAUSTED, "no more"),
                                (lambda: calls.channel.unary_unary("/lab.Echo/None")(b"", timeout=SECONDS),
                                 grpc.StatusCode.UNIMPLEMENTED, "not found")):
        try:
            call()
            true(False, "a call that fails")
        except grpc.RpcError as error:
            equal(error.code(), status, "status")
            contains(error.details(), words, "details")
    equal(calls.once(b"ok", timeout=SECONDS), b"ok", "the next call")
    equal(proxy.counter("origin_http2_connections"), 1, "connections")


def test_streams_in_both_directions(lab):
    """Each message waits for the answer to the one before it: a proxy that keeps anything back would stop here."""
    server, _proxy, calls = through(lab)
    heard = threading.Semaphore(0)

    def talk():
        for count in range(50):
            yield b"message %d" % count
            true(heard.acquire(timeout=SECONDS), "an answer to each message")
    answers = []
    for answer in calls.talk(talk(), timeout=SECONDS):
        answers.append(answer)
        heard.release()
    equal(answers, [b"heard message %d" % count for count in range(50)], "answers")
    equal(len(server.said), 50, "messages")
    equal(list(calls.many(b"3", timeout=SECONDS)), [b"0", b"1", b"2"], "a stream from the server")
    equal(calls.sum(iter([b"x" * 10_000] * 300), timeout=SECONDS), b"3000000", "a stream from the client")


def test_a_call_that_is_cancelled_ends_at_the_server(lab):
    server, proxy, calls = through(lab)
    stream = calls.many(b"1000000000", timeout=SECONDS)
    equal(next(stream), b"0", "the first message")
    stream.cancel()
    true(server.gone.wait(SECONDS), "the server learns that its client has gone")
    equal(calls.once(b"next", timeout=SECONDS), b"next", "the next call")
    until(lambda: proxy.counter("origin_http2_resets_sent") == 1, SECONDS, "a reset")
    equal(proxy.counter("origin_http2_connections"), 1, "connections")


def test_many_clients_share_a_connection(lab):
    """Also streams that stay open, and each gets its own answers."""
    server, proxy, _calls = through(lab)
    clients = [Calls(lab, f"127.0.0.1:{proxy.reverse[1]}") for _ in range(4)]
    wrong = []

    def use(number):
        client = clients[number % len(clients)]
        for count in range(20):
            text = b"%d.%d" % (number, count)
            if client.once(text, timeout=SECONDS) != text:
                wrong.append(text)
        said = [b"%d/%d" % (number, count) for count in range(20)]
        if list(client.talk(iter(said), timeout=SECONDS)) != [b"heard " + text for text in said]:
            wrong.append(said)
    threads = [threading.Thread(target=use, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong, [], "answers of others")
    equal((proxy.counter("origin_http2_requests"), len(server.peers)), (16 * 21, 1), "requests, and connections at the server")


def test_over_tls_on_both_sides(lab, shared):
    """The handshakes agree on HTTP/2: nothing is configured for it."""
    server = EchoServer(lab, shared["leaf"])
    port = ports.take()
    proxy = Retort(lab, reverse={"/": f"https://127.0.0.1:{server.port}/"}, origin={"ca_file": shared["ca"]},
                   extra=f'listen "127.0.0.1:{port}" {{ mode = reverse  certificates = {{ "{shared["leaf"].both}" }} }}')
    with open(shared["ca"], "rb") as root:
        calls = Calls(lab, f"localhost:{port}", grpc.ssl_channel_credentials(root.read()))
    answer, call = calls.once.with_call(b"hello", timeout=SECONDS)
    equal((answer, dict(call.trailing_metadata()).get("x-trailer")), (b"hello", "t"), "answer and trailer")
    equal(list(calls.talk(iter([b"a", b"b"]), timeout=SECONDS)), [b"heard a", b"heard b"], "answers")
    equal(proxy.counter("origin_http2_requests"), 2, "requests by HTTP/2")
