export { interlock, Interlock, type LeaseInTheWay, type Options, type Tried } from './interlock.js';
export { Lease, type LeaseAllOptions, type LeaseOptions } from './lease.js';
export type { Once, OnceOptions } from './once.js';
export { Run, type JobOptions, type Ran } from './job.js';
export type { EndpointOptions } from './http.js';
export { Edit, type EditOptions, type EditSaveOptions } from './edit.js';
export type { Marked, Watched, WatchOptions } from './watch.js';
export { Etag, etagOf, versionOf, type EtagAnswer, type RequestHeaders } from './etag.js';
export { Cart, type CartItem, type Reserved } from './cart.js';
export { States, type MoveOptions } from './states.js';
export type { ClaimOptions, Handler, Job } from './claim.js';
export type { SaveOptions, UpdateOptions, Versioned } from './rows.js';
export type { TransactionOptions } from './driver.js';
export {
    asInterlockError, BlindUpdate, ClaimLost, ColumnOwned, Failed, Held, InProgress, InterlockError, LeaseLost, MarkerHeld, MarkerLost, Mismatch, NotEnough,
    NotFound, StaleVersion, StateChanged, TransitionRefused, TryAgain, type Detail,
} from './errors.js';
export { idempotencyKeyText, keyText, seconds, type Duration, type JsonRow, type Key, type RowKey, type Version } from './values.js';
