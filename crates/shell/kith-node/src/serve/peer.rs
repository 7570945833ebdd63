//! Supplies objects to another node, which fetches them from here instead of the object store: the server side of
//! `Node.ReadObject`.

use crate::{versions::HeldStores, versions::throttle::Throttle};
use futures::{StreamExt, stream::BoxStream};
use kith_cluster::background;
use kith_engine::{HeldSource, ObjectError, OpenError, Source};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::{path::Path, sync::Arc};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// The bytes per message. They are few because the threads that send and receive messages also answer reads, which must not
/// wait for long.
const PIECE_BYTES: usize = 64 << 10;
/// The number of pieces that may wait for their reader.
const PIECE_QUEUE: usize = 4;
/// The longest range of one request. It is a few times what a fetch requests at once.
const RANGE_BYTES_MAX: u64 = 256 << 20;

/// The error for an object, or a range of it, that this node does not hold.
fn not_held(request: &v1::ReadObjectRequest, detail: &str) -> Status {
    let v1::ReadObjectRequest { store, component, version, object, .. } = request;
    let message = format!("{object} of {store}/{component} version {version}: {detail}");
    kith_wire::status(ErrorCode::ObjectNotHeld, message, "ask another replica, or the object store")
}

/// Answers a peer.
pub(crate) async fn read_object(
    held: &Arc<HeldStores>,
    request: v1::ReadObjectRequest,
) -> Result<BoxStream<'static, Result<v1::ObjectPiece, Status>>, Status> {
    let names = [&request.store, &request.component, &request.object];
    if let Some(name) = names.into_iter().find(|name| !is_plain(name)) {
        let message = format!("{name:?} is no name of a store, component or object");
        return Err(kith_wire::status(ErrorCode::BadRequest, message, "use a kith of this release"));
    }
    if RANGE_BYTES_MAX < request.bytes {
        let message = format!("a range of {} bytes is longer than {RANGE_BYTES_MAX}", request.bytes);
        return Err(kith_wire::status(ErrorCode::BadRequest, message, "ask for several"));
    }
    let held = Arc::clone(held);
    let (sender, receiver) = mpsc::channel(PIECE_QUEUE);
    // Copies are not urgent: this node's own requests come first.
    background::spawn(move || {
        if let Err(status) = send_range(&held, &request, &sender) {
            // The peer may have disconnected.
            let _ = sender.blocking_send(Err(status));
        }
    });
    Ok(ReceiverStream::new(receiver).boxed())
}

fn send_range(
    held: &HeldStores,
    request: &v1::ReadObjectRequest,
    sender: &mpsc::Sender<Result<v1::ObjectPiece, Status>>,
) -> Result<(), Status> {
    let v1::ReadObjectRequest { store, component, version, .. } = request;
    let source: Arc<HeldSource> =
        held.folders.source(store, component, *version).map_err(|error| match error {
            OpenError::NoComponent { .. } => not_held(request, "this node has none of it"),
            other => not_held(request, &other.to_string()),
        })?;
    supply(&*source, request, &held.origins.supplies, sender)
}

/// Sends a range of a source in pieces, each after its turn in the throttle.
fn supply(
    source: &dyn Source,
    request: &v1::ReadObjectRequest,
    throttle: &Throttle,
    sender: &mpsc::Sender<Result<v1::ObjectPiece, Status>>,
) -> Result<(), Status> {
    let v1::ReadObjectRequest { object, offset, bytes, .. } = request;
    let moving = throttle.moving();
    let mut done = 0;
    while done < *bytes {
        let mut piece = vec![0; PIECE_BYTES.min((bytes - done) as usize)];
        let at = offset.checked_add(done).ok_or_else(|| not_held(request, "no object is so long"))?;
        let count = match source.read(object, at, &mut piece) {
            Ok(count) => count,
            // If only a part of the range is here, the rest reads as zeros. The caller verifies what it uses.
            Err(ObjectError::Missing { .. }) if 0 < done => piece.len(),
            Err(error) => return Err(not_held(request, &error.to_string())),
        };
        let ends = count < piece.len();
        piece.truncate(count);
        if moving.pass(count as u64).is_break() {
            return Err(kith_wire::status(
                ErrorCode::Leaving,
                "this node is about to end".to_owned(),
                "ask another replica",
            ));
        }
        metrics::counter!("kith_node_read_by_peers_bytes_total").increment(count as u64);
        if 0 < count && sender.blocking_send(Ok(v1::ObjectPiece { bytes: piece.into() })).is_err() {
            return Ok(());
        }
        // Yield, because the kernel lets a running thread continue for milliseconds, whatever its priority.
        std::thread::yield_now();
        done += count as u64;
        if ends {
            break;
        }
    }
    Ok(())
}

/// Whether the name is that of a single file or folder, and cannot lead elsewhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && Path::new(name).components().count() == 1
        && !name.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{num::NonZeroU64, thread};
    use tokio_util::sync::CancellationToken;
    use tonic::Code;

    struct Ones(usize);

    impl Source for Ones {
        fn read(&self, _: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
            let count = into.len().min(self.0 - offset as usize);
            into[..count].fill(1);
            Ok(count)
        }
    }

    /// Returns everything that `supply` sends from `Ones`, through a throttle that passes one byte per second until `then`
    /// has run.
    fn supplied(throttle: &Throttle, then: impl FnOnce()) -> Vec<Result<v1::ObjectPiece, Status>> {
        let request = v1::ReadObjectRequest { bytes: u64::from(u32::MAX), ..Default::default() };
        let (sender, mut receiver) = mpsc::channel(PIECE_QUEUE);
        thread::scope(|scope| {
            let supplier = scope.spawn(move || {
                if let Err(status) = supply(&Ones(PIECE_BYTES + 7), &request, throttle, &sender) {
                    sender.blocking_send(Err(status)).expect("somebody listens");
                }
            });
            while throttle.state().waiting == 0 {
                thread::yield_now();
            }
            let state = throttle.state();
            assert_eq!((state.moving, state.bytes), (1, 0), "nothing passes before its turn");
            then();
            let pieces = std::iter::from_fn(|| receiver.blocking_recv()).collect();
            supplier.join().expect("it does not panic");
            pieces
        })
    }

    #[test]
    fn peers_wait_for_their_turn_and_hear_of_a_new_rate() {
        let throttle = Throttle::new(None, CancellationToken::new());
        throttle.hold_back(NonZeroU64::new(1));
        let pieces = supplied(&throttle, || throttle.hold_back(None));
        let lengths: Vec<_> = pieces.into_iter().map(|piece| piece.expect("no error").bytes.len()).collect();
        assert_eq!(lengths, [PIECE_BYTES, 7]);
        assert_eq!((throttle.state().moving, throttle.state().bytes), (0, PIECE_BYTES as u64 + 7));
    }

    #[test]
    fn peers_do_not_keep_a_node_that_ends() {
        let stop = CancellationToken::new();
        let throttle = Throttle::new(NonZeroU64::new(1), stop.clone());
        let pieces = supplied(&throttle, || stop.cancel());
        let codes: Vec<_> = pieces.into_iter().map(|piece| piece.expect_err("it ends").code()).collect();
        assert_eq!(codes, [Code::Unavailable]);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", "a/", "/a", ".hidden"] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(is_plain("00003.pack") && is_plain("manifest.json") && is_plain("connection"));
    }
}
