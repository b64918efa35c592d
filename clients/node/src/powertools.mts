// The layer of powertools.ts. Powertools has a copy of its classes for import and one for require, which are two types.

import type { BasePersistenceLayer } from '@aws-lambda-powertools/idempotency/persistence';
import { InterlockPersistenceLayer as Layer, type PersistenceOptions } from './powertools.js';

export type { PersistenceOptions };
export type InterlockPersistenceLayer = BasePersistenceLayer;
export const InterlockPersistenceLayer = Layer as unknown as new <Tx>(options: PersistenceOptions<Tx>) => BasePersistenceLayer;
