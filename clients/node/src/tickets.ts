// Waiters for leases: one connection listens for all of them, and is closed when there is none.

import type { Own } from './driver.js';
import { pause } from './timing.js';

export class Tickets {
    readonly #own: Own;
    readonly #woken = new Map<string, () => void>();
    #waiters = 0;
    #listener: { stop(): void } | undefined;
    #idle: NodeJS.Timeout | undefined;

    constructor(own: Own) {
        this.#own = own;
    }

    /** Callers that wait: the connection lives until the last has left, and a little longer for the next one. */
    enter(): void {
        this.#waiters++;
        clearTimeout(this.#idle);
        this.#listener ??= this.#own.listen('interlock_lease', (ticket) => this.#woken.get(ticket)?.(), () => {
            for (const wake of [...this.#woken.values()]) wake(); // what was sent before the connection was there is lost
        });
    }

    leave(): void {
        if (--this.#waiters > 0) return;
        this.#idle = setTimeout(() => this.close(), 5000);
        this.#idle.unref();
    }

    /** Until the ticket is called, the signal is aborted, or the milliseconds are over. Register before you ask the server. */
    expect(ticket: string, signal?: AbortSignal): { wait(milliseconds: number): Promise<void>; forget(): void } {
        let called = false, wake = () => { called = true; };
        this.#woken.set(ticket, () => wake());
        return {
            wait: async (milliseconds) => {
                if (called) return;
                const pausing = pause(milliseconds, signal);
                wake = () => { called = true; pausing.wake(); };
                await pausing.over;
            },
            forget: () => { this.#woken.delete(ticket); },
        };
    }

    close(): void {
        clearTimeout(this.#idle);
        this.#listener?.stop();
        this.#listener = undefined;
    }
}
