export * from './drizzle.js';
