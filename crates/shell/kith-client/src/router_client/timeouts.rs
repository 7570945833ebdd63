//! The time that a client waits for a router, and the error if the router did not answer in time.

use kith_query::QueryOptions;
use kith_types::ErrorCode;
use kith_wire::v1;
use std::time::Duration;
use tonic::{Response, Status};

/// The time that a router may take to return its topology when it is chosen.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit of an administrative call.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of a query without a deadline. No router allows a longer one.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The time beyond a query's deadline that the client waits, for the way there and back.
pub(super) const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// The time beyond the deadline that a leader may take to report the outcome of a write.
pub const ANSWER_GRACE: Duration = Duration::from_millis(500);

/// Runs a call that ends in time, whatever the other side does.
pub(super) async fn within<T>(
    timeout: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Response<T>, Status> {
    tokio::time::timeout(timeout, call)
        .await
        .unwrap_or_else(|_| Err(no_answer(&format!("within {} ms", timeout.as_millis()))))
}

/// The time that a client waits for a router's answer: a little longer than the query's deadline, so that the router
/// can report that the deadline has passed.
pub(super) fn timeout(options: &QueryOptions) -> Duration {
    options.deadline.unwrap_or(QUERY_TIMEOUT) + DEADLINE_GRACE
}

/// The error of a query whose [`timeout`] has passed.
pub(super) fn overdue(timeout: Duration) -> Status {
    let (deadline, grace) = (timeout.saturating_sub(DEADLINE_GRACE), DEADLINE_GRACE);
    no_answer(&format!(
        "within {} ms, nor word of it in the {} ms after",
        deadline.as_millis(),
        grace.as_millis()
    ))
}

/// The deadline of a query in frames: a little longer than its own, whose end the router itself reports.
pub(super) fn frame_deadline(options: Option<&v1::QueryOptions>) -> Option<Duration> {
    let millis = options.map_or(0, |options| options.deadline_ms);
    (0 < millis).then(|| Duration::from_millis(millis.into()) + DEADLINE_GRACE)
}

fn no_answer(when: &str) -> Status {
    let message = format!("no answer {when}");
    let help = "the router may be frozen or cut off: look at its process, or ask another (--router)";
    kith_wire::status(ErrorCode::DeadlineExceeded, message, help)
}
