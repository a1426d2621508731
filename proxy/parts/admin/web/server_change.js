// Changes of one server of a group while the proxy runs: the words behind its URL, such as "weight=3 drain". They are read again
// before each change, so that what somebody else has changed stays.
//     const what = new ServerChange(api, "web", "http://10.0.0.1:8080", keep);
//     await what.drain(true); await what.weigh(3); await what.undo();

export class ServerChange {
    constructor(api, group, url, keep) {
        this.api = api;
        this.list = `origins.${group}.servers`;
        this.url = url;
        this.name = `${this.list}[${url}]`;
        this.values = keep ? {save: "yes"} : {};
    }

    async words() {
        const {options} = await this.api.get("/settings/options", {name: this.list});
        const servers = options.flatMap((option) => option.value).map((text) => text.split(/\s+/).filter(Boolean));
        const found = servers.find(([url]) => url === this.url);
        if (!found) throw new this.api.Refused(404, `${this.list} has no ${this.url} any more: look again.`);
        return found.slice(1);
    }

    async put(words) {
        const {changes} = await this.api.get("/settings/changes");
        const now = changes.find((change) => change.name === this.name);
        const text = words.join(" ");
        // What the files say needs no change that stands over them.
        if (now && now.configured === text) return this.undo();
        return this.api.change("/settings", this.values, "POST", {[this.name]: text});
    }

    async drain(wanted) {
        const words = (await this.words()).filter((word) => word !== "drain");
        return this.put(wanted ? [...words, "drain"] : words);
    }

    async weigh(weight) {
        const words = (await this.words()).filter((word) => !word.startsWith("weight="));
        return this.put(weight === 1 ? words : [`weight=${weight}`, ...words]);
    }

    undo() {
        return this.api.change("/settings", {...this.values, name: this.name}, "DELETE");
    }
}
