#include "tls/bio.h"

#include "base/assert.h"
#include "tls/stream.h"

#include <errno.h>
#include <linux/tls.h>
#include <openssl/bio.h>
#include <pthread.h>
#include <sys/socket.h>

/* Commands that OpenSSL gives to a BIO for the kernel's TLS. openssl/bio.h names them in a comment
 * only. */
enum { KERNEL_SET_KEYS = 72, KERNEL_SET_RECORD_TYPE = 74, KERNEL_CLEAR_RECORD_TYPE = 75 };

static BIO_METHOD *method; /* of all; made once, lives as long as the process */
static pthread_once_t method_made = PTHREAD_ONCE_INIT;

static struct tls_bio *tls_bio_of(BIO *from) {
    struct tls_bio *bio;
    CAST_OBJ(bio, BIO_get_data(from), TLS_BIO_MAGIC);
    return bio;
}

static size_t take_replayed(struct tls_bio *bio, char *buffer, size_t capacity) {
    size_t length = bio->replay_end - bio->replay_at;
    if (length > capacity)
        length = capacity;
    memcpy(buffer, bio->replay + bio->replay_at, length);
    bio->replay_at += length;
    if (bio->replay_at == bio->replay_end) {
        free(bio->replay);
        bio->replay = NULL;
    }
    return length;
}

/* A result of the stream below, as recv and send give theirs. */
static ssize_t result_below(enum io_status status, size_t count) {
    switch (status) {
    case IO_DONE: return (ssize_t)count;
    case IO_END: return 0;
    case IO_WAIT: errno = EAGAIN; return -1;
    default: errno = EPROTO; return -1;
    }
}

static ssize_t bio_receive(struct tls_bio *bio, char *buffer, size_t capacity) {
    ssize_t count;
    if (bio->below != NULL) {
        size_t got;
        enum io_status status = tls_stream_read(bio->below, buffer, capacity, &got);
        return result_below(status, got);
    }
    do
        count = recv(bio->fd, buffer, capacity, 0);
    while (count < 0 && errno == EINTR);
    return count;
}

/* After a read that filled less than its room. */
static bool bio_has_more(const struct tls_bio *bio) {
    return bio->below != NULL ? tls_stream_has_more(bio->below) : bio->hangup;
}

static int tls_bio_on_read(BIO *from, char *buffer, size_t capacity, size_t *got) {
    struct tls_bio *bio = tls_bio_of(from);
    ssize_t count;
    BIO_clear_retry_flags(from);
    *got = 0;
    errno = EPROTO;
    if (bio->stopped)
        return 0;
    if (bio->replay != NULL) {
        *got = take_replayed(bio, buffer, capacity);
        return 1;
    }
    if (bio->drained) {
        BIO_set_retry_read(from);
        return 0;
    }
    count = bio_receive(bio, buffer, capacity);
    bio->drained = count < (ssize_t)capacity && !bio_has_more(bio);
    if (count > 0) {
        *got = (size_t)count;
        return 1;
    }
    if (count == 0)
        bio->ended = true;
    else if (errno == EAGAIN)
        BIO_set_retry_read(from);
    return 0;
}

static void keep(struct tls_bio *bio, const char *bytes, size_t length) {
    size_t kept = tls_bio_kept(bio);
    if (bio->kept_capacity - bio->kept_end < length && bio->kept_at > 0) {
        memmove(bio->kept, bio->kept + bio->kept_at, kept);
        bio->kept_at = 0;
        bio->kept_end = kept;
    }
    if (bio->kept_capacity - bio->kept_end < length) {
        size_t capacity = kept + length;
        if (bio->gather && capacity < TLS_BIO_GATHER)
            capacity = TLS_BIO_GATHER;
        bio->kept = xrealloc(bio->kept, capacity);
        bio->kept_capacity = capacity;
    }
    memcpy(bio->kept + bio->kept_end, bytes, length);
    bio->kept_end += length;
}

static void forget_kept(struct tls_bio *bio) {
    free(bio->kept);
    bio->kept = NULL;
    bio->kept_at = bio->kept_end = bio->kept_capacity = 0;
}

static ssize_t send_below(struct tls_bio *bio, const struct iovec pieces[2]) {
    size_t put;
    bool first = pieces[0].iov_len == 0, second = pieces[1].iov_len == 0;
    enum io_status status =
        tls_stream_write(bio->below, pieces + first, 2 - first - second, false, &put);
    ssize_t sent = result_below(status, put);
    if (sent > 0)
        bio->sent += (size_t)sent;
    return sent;
}

/* Sends the kept bytes and then these. Returns how many the socket took; -1: errno says why. */
static ssize_t send_with_kept(struct tls_bio *bio, const char *bytes, size_t length) {
    struct iovec pieces[] = {
        {bio->kept + bio->kept_at, tls_bio_kept(bio)},
        {(char *)bytes, length},
    };
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    ssize_t sent;
    if (bio->below != NULL)
        return send_below(bio, pieces);
    do
        if (bio->kept == NULL)
            sent = send(bio->fd, bytes, length, MSG_NOSIGNAL);
        else if (length == 0)
            sent = send(bio->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL);
        else
            sent = sendmsg(bio->fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent > 0)
        bio->sent += (size_t)sent;
    return sent;
}

/* Sends the kept bytes and these, and keeps what the socket does not take. False: errno says why
 * nothing can be sent any more. */
static bool send_or_keep(struct tls_bio *bio, const char *bytes, size_t length) {
    size_t kept = tls_bio_kept(bio);
    ssize_t sent = send_with_kept(bio, bytes, length);
    if (sent < 0 && errno != EAGAIN)
        return false;
    size_t taken = sent < 0 ? 0 : (size_t)sent;
    if (taken < kept) {
        bio->kept_at += taken;
        taken = 0;
    } else {
        taken -= kept;
        forget_kept(bio);
    }
    if (taken < length)
        keep(bio, bytes + taken, length - taken);
    return true;
}

enum io_status tls_bio_flush(struct tls_bio *bio) {
    CHECK_OBJ(bio, TLS_BIO_MAGIC);
    if (bio->kept == NULL)
        return IO_DONE;
    if (!send_or_keep(bio, NULL, 0))
        return IO_FAILED;
    return bio->kept == NULL ? IO_DONE : IO_WAIT;
}

/* Sends what is no data as a record of its type. */
static int send_record(struct tls_bio *bio, BIO *to, const char *bytes, size_t length,
                       size_t *put) {
    char control[CMSG_SPACE(sizeof bio->record_type)] = {0};
    struct iovec piece = {(char *)bytes, length};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *type = CMSG_FIRSTHDR(&message);
    ssize_t sent = -1;
    type->cmsg_level = SOL_TLS;
    type->cmsg_type = TLS_SET_RECORD_TYPE;
    type->cmsg_len = CMSG_LEN(sizeof bio->record_type);
    memcpy(CMSG_DATA(type), &bio->record_type, sizeof bio->record_type);
    if (tls_bio_flush(bio) != IO_DONE)
        errno = EAGAIN;
    else
        sent = sendmsg(bio->fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno == EAGAIN || errno == EINTR)
            BIO_set_retry_write(to);
        return 0;
    }
    bio->record_type = 0;
    *put = (size_t)sent;
    return 1;
}

static int tls_bio_on_write(BIO *to, const char *bytes, size_t length, size_t *put) {
    struct tls_bio *bio = tls_bio_of(to);
    BIO_clear_retry_flags(to);
    *put = 0;
    errno = EPROTO;
    if (bio->stopped)
        return 0;
    if (bio->record_type != 0)
        return send_record(bio, to, bytes, length, put);
    if (tls_bio_kept(bio) > TLS_BIO_KEPT_MOST && tls_bio_flush(bio) != IO_DONE) {
        BIO_set_retry_write(to);
        return 0;
    }
    if (bio->gather && tls_bio_kept(bio) + length <= TLS_BIO_GATHER)
        keep(bio, bytes, length);
    else if (!send_or_keep(bio, bytes, length))
        return 0;
    *put = length;
    return 1;
}

/* Nothing that is encrypted already may go through the kernel's encryption. The keys for what we
 * read stay with OpenSSL. */
static long move_keys(struct tls_bio *bio, bool sending, void *keys) {
    if (bio->keys == NULL || !sending || tls_bio_flush(bio) != IO_DONE)
        return 0;
    bio->in_kernel = BIO_ctrl(bio->keys, KERNEL_SET_KEYS, sending, keys) > 0;
    return bio->in_kernel;
}

/* OpenSSL flushes after each flight of a handshake, and after an alert. What the socket does not
 * take stays kept, and the stream flushes it later. */
static long tls_bio_on_control(BIO *of, int command, long number, void *pointer) {
    struct tls_bio *bio = tls_bio_of(of);
    switch (command) {
    case BIO_CTRL_FLUSH: return bio->lazy || tls_bio_flush(bio) != IO_FAILED;
    case BIO_CTRL_EOF: return bio->ended;
    case BIO_CTRL_GET_KTLS_SEND: return bio->in_kernel;
    case KERNEL_SET_KEYS: return move_keys(bio, number != 0, pointer);
    case KERNEL_SET_RECORD_TYPE: bio->record_type = (unsigned char)number; return 1;
    case KERNEL_CLEAR_RECORD_TYPE: bio->record_type = 0; return 1;
    case BIO_CTRL_PUSH:
    case BIO_CTRL_POP: return 1;
    default: return 0;
    }
}

static void make_method(void) {
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
    if (method == NULL)
        return;
    BIO_meth_set_read_ex(method, tls_bio_on_read);
    BIO_meth_set_write_ex(method, tls_bio_on_write);
    BIO_meth_set_ctrl(method, tls_bio_on_control);
}

BIO *tls_bio_open(struct tls_bio *bio, int fd, struct slice replay) {
    INIT_OBJ(bio, TLS_BIO_MAGIC);
    pthread_once(&method_made, make_method);
    BIO *made = method != NULL ? BIO_new(method) : NULL;
    if (made == NULL)
        return NULL;
    bio->fd = fd;
    if (replay.length > 0) {
        bio->replay = xmalloc(replay.length);
        bio->replay_end = replay.length;
        memcpy(bio->replay, replay.base, replay.length);
    }
    BIO_set_data(made, bio);
    BIO_set_init(made, 1);
    return made;
}

void tls_bio_offer_kernel(struct tls_bio *bio) {
    CHECK_OBJ(bio, TLS_BIO_MAGIC);
    bio->keys = BIO_new_socket(bio->fd, BIO_NOCLOSE);
}

void tls_bio_release(struct tls_bio *bio) {
    CHECK_OBJ(bio, TLS_BIO_MAGIC);
    BIO_free(bio->keys);
    bio->keys = NULL;
    free(bio->replay);
    bio->replay = NULL;
    forget_kept(bio);
}
