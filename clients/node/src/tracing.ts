// Spans and a counter of OpenTelemetry, if @opentelemetry/api is installed.

interface Span {
    setAttribute(name: string, value: string | number | boolean): unknown;
    recordException(error: Error): void;
    setStatus(status: { code: number; message?: string }): unknown;
    end(): void;
}
interface Counter { add(value: number, attributes: Record<string, string>): void }
interface Api {
    metrics?: { getMeterProvider(): unknown; getMeter(name: string): { createCounter(name: string, options: object): Counter } };
    trace: { getTracer(name: string): { startActiveSpan<T>(name: string, options: object, work: (span: Span) => T): T } };
}

const none: Span = { setAttribute() {}, recordException() {}, setStatus() {}, end() {} };

let api: Api | undefined;
try {
    api = require('@opentelemetry/api') as Api;
} catch { /* it is not installed */ }

// A counter of another provider than the current one counts nothing.
let counted: { provider: unknown; calls: Counter } | undefined;
function count(metrics: NonNullable<Api['metrics']>, call: string, error: string | undefined): void {
    const provider = metrics.getMeterProvider();
    const calls = counted && counted.provider === provider ? counted.calls
        : metrics.getMeter('pg-interlock').createCounter('interlock.calls', { description: 'Calls of pg-interlock, by name and error' });
    counted = { provider, calls };
    calls.add(1, { 'interlock.call': call, ...(error === undefined ? {} : { 'error.type': error }) });
}

/** The work in a span. Outcomes that are no failure, such as a lease that another client holds, have status unset. */
export async function traced<T>(name: string, attributes: Record<string, string>, work: (span: Span) => Promise<T>): Promise<T> {
    if (!api) return work(none);
    const { metrics } = api;
    let failure: string | undefined;
    return api.trace.getTracer('pg-interlock').startActiveSpan(name, { attributes: { 'db.system.name': 'postgresql', ...attributes } }, async (span) => {
        try {
            return await work(span);
        } catch (error) {
            const { name: kind, code, status } = error as { name?: string; code?: string; status?: number };
            failure = kind || 'Error';
            span.setAttribute('error.type', code || failure);
            if (!(status && status < 500)) {
                span.recordException(error as Error);
                span.setStatus({ code: 2, message: String((error as Error)?.message) });
            }
            throw error;
        } finally {
            span.end();
            if (metrics) count(metrics, name, failure); // from 1.3 on
        }
    });
}
