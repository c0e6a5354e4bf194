/**
 * Answers wait here until the server has stored them: in order, each once, across reloads.
 *
 * An entry is one request, kept in localStorage under the store's id and removed by the reply. A
 * request may be sent twice (reply lost, two tabs of one browser): the server takes it once, by the
 * UUIDs in it.
 */
const LIMIT = 20;
const STALE = 10_000; // ms after which another tab's entry is sent by this one

export class Outbox {
  /** `request(path, body)` rejects with {status}; `changed()` is called whenever the state may differ. */
  constructor(store, tab, request, changed) {
    Object.assign(this, {tab, request, changed, entries: [], number: 0, wait: 0, busy: false, problem: null});
    this.prefix = `balancemix.outbox.${store}.`;
    this.adopt(0);
    addEventListener("online", () => this.wake());
  }

  /** Number of requests not yet stored. */
  get waiting() { return this.entries.length; }

  /** Whether so many wait that nothing more may be answered. */
  get full() { return this.waiting >= LIMIT; }

  /** What the header says. */
  get words() {
    return !this.waiting ? "✓ Saved" : this.wait ? `${this.waiting} waiting` : "Saving";
  }

  /** Take over what other tabs, or this one before a reload, have left. */
  adopt(age = STALE) {
    const known = new Set(this.entries.map((entry) => entry.key));
    const left = Object.keys(localStorage).filter((key) => key.startsWith(this.prefix) && !known.has(key));
    for (const key of left.sort()) {
      if (Date.now() - parseInt(key.slice(this.prefix.length), 10) < age) continue;
      const kept = JSON.parse(localStorage.getItem(key));
      if (kept) this.entries.push({key, ...kept, adopted: true});
    }
    this.run();
  }

  /** Keep a request and send it in its turn; resolves with the reply. */
  send(path, body) {
    const number = String(this.number++).padStart(6, "0");
    const entry = {key: `${this.prefix}${Date.now()}.${number}.${this.tab}`, path, body};
    // Where the browser keeps nothing, the answer is still sent from memory.
    try { localStorage.setItem(entry.key, JSON.stringify({path, body})); } catch { entry.memory = true; }
    const reply = new Promise((resolve, reject) => Object.assign(entry, {resolve, reject}));
    this.entries.push(entry);
    this.run();
    return reply;
  }

  /** Try again now. */
  wake() {
    this.wait = this.wait && 1;
    this.run();
  }

  async run() {
    if (this.busy) return;
    clearTimeout(this.timer);
    this.busy = true;
    while (this.entries.length) {
      this.changed();
      const entry = this.entries[0];
      if (entry.adopted && !localStorage.getItem(entry.key)) { // its own tab was faster
        this.entries.shift();
        continue;
      }
      try {
        const reply = await this.request(entry.path, entry.body);
        this.done(entry);
        entry.resolve?.(reply);
      } catch (error) {
        if ([400, 403, 404, 413].includes(error.status) && error.code !== "name") { // never will be taken
          this.done(entry);
          entry.reject?.(error);
          continue;
        }
        this.problem = error;
        this.wait = Math.min(2 * this.wait || 500, 4000);
        this.timer = setTimeout(() => this.run(), this.wait);
        break;
      }
    }
    this.busy = false;
    this.changed();
  }

  done(entry) {
    this.entries.shift();
    this.wait = 0;
    this.problem = null;
    localStorage.removeItem(entry.key);
  }
}
