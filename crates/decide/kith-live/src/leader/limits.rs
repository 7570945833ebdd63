//! Limits on the work that a leader accepts, and on how long it waits.

use std::time::Duration;

/// The maximum number of accepted writes that are neither answered nor have begun an intent. A write waits for at most this
/// many others, which are about a second of work.
pub(super) const WRITES_MAX: usize = 8_192;
/// The maximum size of these writes in memory, in bytes.
pub(super) const WRITES_BYTES_MAX: usize = 64 << 20;
/// The maximum number of deliveries that wait. Further ones are refused, and their senders send them again.
pub(super) const DELIVERIES_MAX: usize = 4_096;
/// The maximum number of open intents of one partition. A new leader reads all of them before it leads.
pub(super) const INTENTS_MAX: usize = 1_024;
/// The maximum number of writes in one transaction. The same limit holds for deliveries, and for completions.
pub(super) const BATCH_TASKS_MAX: usize = 1_024;
/// The size in bytes after which a transaction takes no further tasks, so that it stays well below the limits of databases.
/// A single task may be larger.
pub(super) const BATCH_BYTES_MAX: usize = 8 << 20;
/// The maximum number of times that a write is decided again after commits that did not take effect.
pub(super) const TRIES_MAX: u32 = 3;
/// The number of failures in a row through which writes wait for the database to begin a term. The pauses after these
/// failures add up to 350 ms.
pub(super) const FAILURES_HELD_MAX: u32 = 3;
/// The time that a leader waits for the answer to a delivery before it sends it again.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that a leader waits for open intents when it hands a partition over. The next leader completes the others,
/// but their callers get the error that the outcome is not known.
pub(super) const HANDOVER_TIMEOUT: Duration = Duration::from_secs(10);

const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// This is well below ten seconds, within which an open intent should be completed after a failure.
const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// Returns how long to wait after this many consecutive failures.
pub(super) fn back_off(failures: u32) -> Duration {
    BACK_OFF_MAX.min(BACK_OFF_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16)))
}
