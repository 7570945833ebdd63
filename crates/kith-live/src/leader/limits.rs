//! How much a leader takes on, and how long it waits.

use std::time::Duration;

/// The most writes that wait or are under way. Each waits for at most this many others, which is about a second of work.
pub(super) const WRITES_MAX: usize = 8_192;
/// The most bytes that they take.
pub(super) const WRITES_BYTES_MAX: usize = 64 << 20;
/// The most deliveries that wait. Their senders send them again.
pub(super) const DELIVERIES_MAX: usize = 4_096;
/// The most open intents of one partition. A new leader reads them all before it begins.
pub(super) const INTENTS_MAX: usize = 1_024;
/// The most writes of one transaction, and as many deliveries and completions.
pub(super) const BATCH_TASKS_MAX: usize = 1_024;
/// The most bytes of one transaction, unless its only task has more, so that it stays well below the limits of databases.
pub(super) const BATCH_BYTES_MAX: usize = 8 << 20;
/// How often a write is decided again after a commit that proved not to have taken effect.
pub(super) const TRIES_MAX: u32 = 3;
/// The number of failures in a row through which writes wait for the database to begin a term. Including the pauses between the
/// attempts, this takes about half a second if the database refuses at once.
pub(super) const FAILURES_HELD_MAX: u32 = 3;
/// How long a leader waits for the answer to a delivery before it sends it again.
pub(super) const DELIVERY_PATIENCE: Duration = Duration::from_secs(1);
/// How long it waits for open intents when it hands a partition over. The next leader completes the rest, but their callers are
/// then told that the outcome is not known.
pub(super) const HANDOVER_PATIENCE: Duration = Duration::from_secs(10);

const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// Below ten seconds, within which an open intent is to be completed after a failure.
const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// How long to wait after so many failures in a row.
pub(super) fn back_off(failures: u32) -> Duration {
    BACK_OFF_MAX.min(BACK_OFF_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16)))
}
