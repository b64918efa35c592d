// One connection that listens on every channel that somebody wants to hear. It is made again when it breaks.

import { pause, within } from './timing.js';

/** A connection that listens. */
export interface Ear {
    listen(channel: string): Promise<unknown>;
    unlisten(channel: string): Promise<unknown>;
    /** Rejects if it no longer hears: a connection whose other end is gone says nothing. */
    check(): Promise<unknown>;
    /** Resolves when it has broken, or was made again by the driver. */
    readonly broken: Promise<void>;
    close(): unknown;
}

interface Subscription { channel: string; hear: (payload: string) => void; ready: () => void }

export class Listener {
    readonly #connect: (hear: (channel: string, payload: string) => void) => Promise<Ear>;
    readonly #subscriptions = new Set<Subscription>();
    #running: Promise<void> | undefined;
    #called = false;
    #wake = () => {};

    constructor(connect: (hear: (channel: string, payload: string) => void) => Promise<Ear>) {
        this.#connect = connect;
    }

    subscribe(channel: string, hear: (payload: string) => void, ready: () => void): { stop(): void } {
        const subscription = { channel, hear, ready };
        this.#subscriptions.add(subscription);
        this.#start();
        this.#call();
        return { stop: () => { this.#subscriptions.delete(subscription); this.#call(); } };
    }

    async close(): Promise<void> {
        this.#subscriptions.clear();
        this.#call();
        await this.#running;
    }

    #call(): void {
        this.#called = true;
        this.#wake();
    }

    #start(): void {
        this.#running ??= this.#run().finally(() => {
            this.#running = undefined;
            if (this.#subscriptions.size > 0) this.#start();
        });
    }

    async #run(): Promise<void> {
        while (this.#subscriptions.size > 0) {
            await this.#listen().catch(() => {});
            if (this.#subscriptions.size > 0) await this.#pause(500);
        }
    }

    async #listen(): Promise<void> {
        const ear = await this.#connect((channel, payload) => {
            for (const each of [...this.#subscriptions]) if (each.channel === channel) each.hear(payload);
        });
        let broken = false;
        void ear.broken.then(() => { broken = true; this.#call(); });
        const channels = new Set<string>(), ready = new Set<Subscription>();
        try {
            while (this.#subscriptions.size > 0 && !broken) {
                this.#called = false;
                await this.#follow(ear, channels, ready);
                await this.#pause(30_000);
                if (!this.#called) await within(10_000, ear.check());
            }
        } finally {
            await ear.close();
        }
    }

    // LISTEN and UNLISTEN, as the subscriptions have changed.
    async #follow(ear: Ear, channels: Set<string>, ready: Set<Subscription>): Promise<void> {
        for (const each of [...this.#subscriptions]) {
            if (ready.has(each)) continue;
            if (!channels.has(each.channel)) await within(10_000, ear.listen(each.channel));
            channels.add(each.channel);
            ready.add(each);
            if (this.#subscriptions.has(each)) each.ready();
        }
        const wanted = new Set([...this.#subscriptions].map(({ channel }) => channel));
        for (const channel of [...channels].filter((each) => !wanted.has(each))) {
            channels.delete(channel);
            await within(10_000, ear.unlisten(channel));
        }
    }

    async #pause(milliseconds: number): Promise<void> {
        if (this.#called) return;
        const pausing = pause(milliseconds);
        this.#wake = pausing.wake;
        await pausing.over;
    }
}
