// Spans of OpenTelemetry, if @opentelemetry/api is installed.

interface Span {
    setAttribute(name: string, value: string | number | boolean): unknown;
    recordException(error: Error): void;
    setStatus(status: { code: number; message?: string }): unknown;
    end(): void;
}
interface Api {
    trace: { getTracer(name: string): { startActiveSpan<T>(name: string, options: object, work: (span: Span) => T): T } };
}

const none: Span = { setAttribute() {}, recordException() {}, setStatus() {}, end() {} };

let api: Api | undefined;
try {
    api = require('@opentelemetry/api') as Api;
} catch { /* it is not installed */ }

/** The work in a span. Outcomes that are no failure, such as a lease that another client holds, have status unset. */
export async function traced<T>(name: string, attributes: Record<string, string>, work: (span: Span) => Promise<T>): Promise<T> {
    if (!api) return work(none);
    return api.trace.getTracer('pg-interlock').startActiveSpan(name, { attributes: { 'db.system.name': 'postgresql', ...attributes } }, async (span) => {
        try {
            return await work(span);
        } catch (error) {
            const { name: kind, code, status } = error as { name?: string; code?: string; status?: number };
            span.setAttribute('error.type', code || kind || 'Error');
            if (!(status && status < 500)) {
                span.recordException(error as Error);
                span.setStatus({ code: 2, message: String((error as Error)?.message) });
            }
            throw error;
        } finally {
            span.end();
        }
    });
}
