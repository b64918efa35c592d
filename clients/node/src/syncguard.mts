export * from './syncguard.js';
