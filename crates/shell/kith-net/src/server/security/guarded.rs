//! A framed service that checks the rights of one caller.

use super::{
    access::tls_required,
    caller::{Caller, CallerIdentity},
    gate::Gate,
    need::Need,
    rights,
};
use crate::server::framed::{FrameReply, FrameService};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use kith_wire::frame::Op;
use std::sync::Arc;
use tonic::Status;

/// Wraps a service for a caller whose rights are checked.
pub(crate) fn guard(
    gate: Arc<Gate>,
    service: Arc<dyn FrameService>,
    caller: Caller,
) -> Arc<dyn FrameService> {
    Arc::new(Guarded { gate, service, caller })
}

/// Checks each request with the gate.
struct Guarded {
    gate: Arc<Gate>,
    service: Arc<dyn FrameService>,
    caller: Caller,
}

impl Guarded {
    /// The same service for another caller.
    fn of(&self, caller: Caller) -> Arc<dyn FrameService> {
        guard(Arc::clone(&self.gate), Arc::clone(&self.service), caller)
    }

    /// Answers a request with `call` if the caller may send it.
    fn checked(
        &self,
        op: Op,
        body: Bytes,
        call: impl FnOnce(Arc<dyn FrameService>, Bytes) -> BoxFuture<'static, Result<FrameReply, Status>>,
    ) -> BoxFuture<'static, Result<FrameReply, Status>> {
        let need = rights::need_of_op(op, &body);
        match need.and_then(|need| self.gate.admit(&self.caller, &need, op.name())) {
            Ok(subject) => {
                let named =
                    (op == Op::Write).then(|| rights::with_subject(&body, subject.as_ref())).flatten();
                call(Arc::clone(&self.service), named.unwrap_or(body))
            }
            Err(status) => future::ready(Err(status)).boxed(),
        }
    }
}

impl FrameService for Guarded {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        self.checked(op, body, |service, body| service.call(op, body))
    }

    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        self.checked(op, body, |service, body| service.call_alone(op, body))
    }

    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        self.checked(op, body, |service, body| service.call_credited(op, body))
    }

    fn identify(self: Arc<Self>, token: &[u8]) -> Result<Option<Arc<dyn FrameService>>, Status> {
        if self.caller.identity == CallerIdentity::Plain {
            return Err(tls_required());
        }
        let caller = self.gate.bearer(token, &self.caller);
        self.gate.admit(&caller, &Need::Known, Op::Identify.name())?;
        Ok(Some(self.of(caller)))
    }

    fn of_nobody(self: Arc<Self>) -> Option<Arc<dyn FrameService>> {
        let nobody = Caller::new(CallerIdentity::Nobody).at(self.caller.peer);
        let is_plain = self.caller.identity == CallerIdentity::Plain;
        (!is_plain).then(|| self.of(nobody))
    }
}
