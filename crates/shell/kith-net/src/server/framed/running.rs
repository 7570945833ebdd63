//! The requests of one connection that are not answered yet.

use super::FrameReply;
use crate::{Charge, InFlight, server::connections::OpenConnection};
use futures::{
    FutureExt,
    future::{AbortHandle, Abortable, BoxFuture},
};
use kith_types::ErrorCode;
use kith_wire::frame::Header;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

/// The reply to a request and the charge for it, which is kept until the reply is sent; or an error.
pub(super) type RequestResult = Result<(FrameReply, Charge), Status>;

/// The requests under way, by id.
pub(super) struct RunningRequests {
    connected: Arc<OpenConnection>,
    /// Yields a request's header and its answer, or no answer if the request was cancelled.
    futures: InFlight<(Header, Option<RequestResult>)>,
    /// Answers that the peer has no room for yet.
    ready: VecDeque<(Header, RequestResult)>,
    cancels: HashMap<u64, AbortHandle>,
}

impl RunningRequests {
    /// Returns an empty set. Each reply is charged to `connected` as soon as it exists.
    pub fn new(connected: Arc<OpenConnection>) -> Self {
        Self { connected, futures: InFlight::default(), ready: VecDeque::new(), cancels: HashMap::new() }
    }

    /// Drops all requests.
    pub fn clear(&mut self) {
        *self = Self::new(Arc::clone(&self.connected));
    }

    /// The number of requests whose answers have not been taken.
    pub fn len(&self) -> usize {
        self.cancels.len()
    }

    /// Whether a request with this id has an answer to come.
    pub fn has(&self, id: u64) -> bool {
        self.cancels.contains_key(&id)
    }

    /// Starts a request. Returns its answer if it is ready at once.
    ///
    /// A request that is alone on its connection stays on the connection's task, so that no other task or thread is woken,
    /// neither to start it nor to answer it. Requests that arrive while one is under way get tasks of their own, so that
    /// they can use all cores.
    pub fn start(
        &mut self,
        header: Header,
        mut call: BoxFuture<'static, Result<FrameReply, Status>>,
        cx: &mut Context<'_>,
    ) -> Option<RequestResult> {
        let is_alone = self.cancels.is_empty();
        if is_alone && let Poll::Ready(answer) = call.poll_unpin(cx) {
            return Some(charged(&self.connected, answer));
        }
        let connected = Arc::clone(&self.connected);
        let call = call.map(move |answer| charged(&connected, answer));
        let call = if is_alone { call.boxed() } else { on_its_own_task(call) };
        let call = within(header.deadline_us, call);
        let (cancel, registration) = AbortHandle::new_pair();
        self.cancels.insert(header.id, cancel);
        let answer = Abortable::new(call, registration);
        self.futures.push(answer.map(move |answer| (header, answer.ok())));
        None
    }

    /// Cancels a request. Ids of requests that are already answered are ignored.
    pub fn cancel(&mut self, id: u64) {
        if let Some(cancel) = self.cancels.get(&id) {
            cancel.abort();
        }
        if let Some(index) = self.ready.iter().position(|(header, _)| header.id == id) {
            self.ready.remove(index);
            self.cancels.remove(&id);
        }
    }

    /// Lets all requests go on, and removes those that were cancelled.
    ///
    /// A peer that reads slowly delays its answers, but never the work: a request may hold a turn that requests of other
    /// peers wait for.
    pub fn poll(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready((header, answer)) = self.futures.poll_next(cx) {
            match answer {
                Some(answer) => self.ready.push_back((header, answer)),
                None => drop(self.cancels.remove(&header.id)),
            }
        }
    }

    /// Takes the answer of the request that ended first.
    pub fn take_answer(&mut self) -> Option<(Header, RequestResult)> {
        let (header, answer) = self.ready.pop_front()?;
        self.cancels.remove(&header.id);
        Some((header, answer))
    }
}

fn charged(connected: &OpenConnection, answer: Result<FrameReply, Status>) -> RequestResult {
    let reply = answer?;
    let charge = connected.charge_reply(reply.bytes())?;
    Ok((reply, charge))
}

fn on_its_own_task(
    call: impl Future<Output = RequestResult> + Send + 'static,
) -> BoxFuture<'static, RequestResult> {
    let task = AbortOnDropHandle::new(tokio::spawn(call));
    task.map(|ended| match ended {
        Ok(answer) => answer,
        Err(error) => Err(Status::internal(format!("a request ended unexpectedly: {error}"))),
    })
    .boxed()
}

/// Drops a request when its deadline has passed.
fn within(deadline_us: u32, call: BoxFuture<'static, RequestResult>) -> BoxFuture<'static, RequestResult> {
    if deadline_us == 0 {
        return call;
    }
    let timed = tokio::time::timeout(Duration::from_micros(deadline_us.into()), call);
    timed
        .map(move |answer| {
            answer.unwrap_or_else(|_| {
                let message = format!("the deadline of {deadline_us} us passed");
                let help = "give the query more time";
                Err(kith_wire::status(ErrorCode::DeadlineExceeded, message, help))
            })
        })
        .boxed()
}
