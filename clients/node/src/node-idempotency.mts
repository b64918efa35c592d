export * from './node-idempotency.js';
