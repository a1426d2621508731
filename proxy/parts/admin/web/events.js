// Transactions as they end, from the event stream. It is read with fetch, because EventSource can't send a token.
//     const events = new Events(session, (event) => rows.unshift(event), (lost) => ..., (text) => setText(state, text));
//     events.listen({result: "DENIED"});
//     events.leave();

const AGAIN = 3000; // milliseconds

// A refusal that time does not mend: the token, the role or a filter is not good. Each question more would be a line of the audit log.
function isFinal(status) {
    return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

export class Events {
    constructor(session, take, lose, say) {
        Object.assign(this, {session, take, lose, say, stop: null});
    }

    leave() {
        if (this.stop) this.stop.abort();
        this.stop = null;
    }

    // Until leave or a final refusal, over the ends of the stream.
    async listen(filter) {
        this.leave();
        const mine = this.stop = new AbortController();
        try {
            const response = await this.session.api.call("GET", "/events", filter, mine.signal);
            this.say("Listening.");
            await this.read(response.body.pipeThrough(new TextDecoderStream()).getReader());
        } catch (reason) {
            if (mine.signal.aborted || this.session.needsToken(reason)) return;
            this.say(reason.status ? reason.message : "The proxy does not answer; the page goes on trying.");
            if (isFinal(reason.status)) return;
        }
        setTimeout(() => this.stop === mine && this.listen(filter), AGAIN);
    }

    async read(reader) {
        for (let rest = "";;) {
            const {done, value} = await reader.read();
            if (done) return;
            const parts = (rest + value).split("\n\n");
            rest = parts.pop();
            for (const part of parts) this.pass(part);
        }
    }

    pass(text) {
        const lines = text.split("\n"), kind = (lines.find((line) => line.startsWith("event: ")) || "").slice(7);
        const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        if (!data) return;
        let event;
        try {
            event = JSON.parse(data);
        } catch {
            return;
        }
        if (kind === "lost") this.lose(event.lost || 0);
        else this.take(event);
    }
}
