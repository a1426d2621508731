/* A helper in C: puts the job's parameters into capitals. docs/SERVICES.md has the protocol.
 *   cc -o upper-helper upper.c      pool upper { command = {"/path/to/upper-helper"} } */
#include <ctype.h>
#include <stdint.h>
#include <sys/socket.h>

struct message {
    uint32_t magic;
    uint16_t version, kind; /* of a job 1, of a result 2 */
    uint64_t id, body_length;
    uint32_t status, milliseconds, inline_length, has_body;
    char pool[24];
    char text[16384];
};

int main(void) {
    static struct message message;
    const size_t head = sizeof message - sizeof message.text;
    for (;;) { /* jobs come one at a time, until retort-helperd hangs up */
        ssize_t got = recv(0, &message, sizeof message, 0);
        if (got <= 0 || message.magic != 0x52744a31 || message.version != 1 || message.kind != 1)
            return got == 0 ? 0 : 1;
        for (uint32_t i = 0; i < message.inline_length; i++)
            message.text[i] = (char)toupper((unsigned char)message.text[i]);
        message.kind = 2;
        message.status = 0; /* done */
        message.has_body = 0;
        message.body_length = 0;
        if (send(0, &message, head + message.inline_length, MSG_NOSIGNAL) < 0)
            return 0;
    }
}
