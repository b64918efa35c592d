// The same instance for import and require: an error is of one class, however the package was loaded.
export * from './index.js';
