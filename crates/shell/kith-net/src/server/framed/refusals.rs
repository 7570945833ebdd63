//! The errors that tell a peer why its connection is closed.

use crate::server::connections::{Reason, STRANGER_FRAME_BYTES_MAX, STRANGER_MESSAGES_MAX};
use kith_types::ErrorCode;
use tonic::Status;

/// The error for a peer that is idle or too slow.
pub(super) fn status_of(reason: Reason) -> Status {
    let (message, help) = match reason {
        Reason::Idle => ("no request was sent over this connection for a long time", "connect again"),
        Reason::SlowRequest => (
            "the request did not arrive in time: it stopped arriving, or arrived more slowly than 128 KiB/s",
            "ask for less at once",
        ),
        Reason::Stalled => ("replies were not read for a minute", "read replies as they arrive"),
    };
    kith_wire::status(reason.code(), message, help)
}

/// The error for an unauthenticated peer that sends a frame of `bytes` bytes, which is too long for it.
pub(super) fn too_long_for_a_stranger(bytes: u64) -> Status {
    let message = format!(
        "an unauthenticated peer sent a frame of {bytes} bytes, but may send at most {STRANGER_FRAME_BYTES_MAX}"
    );
    unauthenticated(message)
}

/// The error for an unauthenticated peer that has sent as many frames as it may.
pub(super) fn too_many_of_a_stranger() -> Status {
    let message =
        format!("an unauthenticated peer sent {STRANGER_MESSAGES_MAX} frames: no more are accepted");
    unauthenticated(message)
}

fn unauthenticated(message: String) -> Status {
    let help = "show a certificate or a token that the access file names";
    kith_wire::status(ErrorCode::Unauthenticated, message, help)
}
