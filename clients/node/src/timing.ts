// Timers. A timer of node holds 24 days at most.

const longest = 2 ** 31 - 1;

/** The promise, or an error after the milliseconds. */
export async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    promise.catch(() => {}); // it may fail after its time
    const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error('timeout: the server has not answered in time')), clamped(milliseconds));
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

export const clamped = (milliseconds: number) => Math.min(Math.max(milliseconds, 0), longest);

/** Ends after the milliseconds, with the signal, or when `wake` is called. */
export function pause(milliseconds: number, signal?: AbortSignal): { over: Promise<void>; wake: () => void } {
    let wake = () => {};
    const over = new Promise<void>((resolve) => {
        const timer = setTimeout(() => wake(), clamped(milliseconds));
        wake = () => {
            clearTimeout(timer);
            signal?.removeEventListener('abort', wake);
            resolve();
        };
        signal?.addEventListener('abort', wake);
        if (signal?.aborted) wake();
    });
    return { over, wake: () => wake() };
}
