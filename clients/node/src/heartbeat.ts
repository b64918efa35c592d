// The sign of life of a claim: prolonged at half of its time, lost at the latest when its time is over by our clock.

import { clamped } from './timing.js';

export class Heartbeat {
    readonly #renew: (limit: number) => Promise<number | undefined>;
    readonly #lost: () => void;
    #length: number; // milliseconds
    #deadline: number;
    #beat: NodeJS.Timeout | undefined;
    #watch: NodeJS.Timeout | undefined;
    #ended = false;

    /**
     * `sent`: by our clock, before the claim was asked for. `renew` returns how many milliseconds are left, and undefined if the
     * claim is lost. It throws where the server cannot be reached, and has to end within `limit` milliseconds.
     */
    constructor(sent: number, length: number, renew: (limit: number) => Promise<number | undefined>, lost: () => void) {
        this.#renew = renew;
        this.#lost = lost;
        this.#length = length;
        this.#deadline = sent + length;
        this.#beatIn(length / 2);
        this.#watchUntilDeadline();
    }

    /** Also asked for without a timer: those of a process that was paused are late. */
    check(): void {
        if (this.#ended || performance.now() < this.#deadline) return;
        this.stop();
        this.#lost();
    }

    stop(): void {
        this.#ended = true;
        clearTimeout(this.#beat);
        clearTimeout(this.#watch);
    }

    #beatIn(milliseconds: number): void {
        this.#beat = setTimeout(() => void this.#prolong(), clamped(milliseconds));
    }

    async #prolong(): Promise<void> {
        const sent = performance.now();
        try {
            const left = await this.#renew(Math.max(this.#length / 4, 100));
            if (this.#ended) return;
            if (left === undefined) {
                this.stop();
                return this.#lost();
            }
            this.#length = left;
            this.#deadline = sent + left;
            this.#beatIn(left / 2);
            clearTimeout(this.#watch);
            this.#watchUntilDeadline();
        } catch {
            if (!this.#ended) this.#beatIn(Math.min(this.#length / 10, 5000));
        }
    }

    #watchUntilDeadline(): void {
        this.check();
        if (!this.#ended) this.#watch = setTimeout(() => this.#watchUntilDeadline(), clamped(this.#deadline - performance.now()));
    }
}
