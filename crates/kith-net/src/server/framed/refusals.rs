//! Why a connection is closed, as its peer is told.

use crate::server::connections::{Reason, STRANGER_FRAME_BYTES_MAX, STRANGER_MESSAGES_MAX};
use kith_types::ErrorCode;
use tonic::Status;

/// The peer is idle, or too slow.
pub(super) fn status_of(reason: Reason) -> Status {
    let (message, help) = match reason {
        Reason::Idle => ("nothing was asked for long", "connect again"),
        Reason::SlowRequest => (
            "the request did not come in time: it stood still, or came more slowly than 128 KiB/s",
            "ask for less at once",
        ),
        Reason::Stalled => ("replies were not read for a minute", "read them"),
    };
    kith_wire::status(reason.code(), message, help)
}

/// A peer that has not shown who it is sends a frame of so many bytes.
pub(super) fn too_long_for_a_stranger(bytes: u64) -> Status {
    let message = format!(
        "a frame of {bytes} bytes, from a peer that has not shown who it is: at most {STRANGER_FRAME_BYTES_MAX} are taken"
    );
    unauthenticated(message)
}

/// A peer that has not shown who it is has sent as many frames as it may.
pub(super) fn too_many_of_a_stranger() -> Status {
    let message = format!(
        "{STRANGER_MESSAGES_MAX} frames came from a peer that has not shown who it is: no more are taken"
    );
    unauthenticated(message)
}

fn unauthenticated(message: String) -> Status {
    let help = "show a certificate or a token that the access file names";
    kith_wire::status(ErrorCode::Unauthenticated, message, help)
}
