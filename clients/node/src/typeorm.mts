export * from './typeorm.js';
