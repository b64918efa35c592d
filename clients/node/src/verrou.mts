export * from './verrou.js';
