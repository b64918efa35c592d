export * from './mikro-orm.js';
