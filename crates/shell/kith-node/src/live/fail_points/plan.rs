//! The plan of a test: the steps of a write that fail, and how they fail.

use futures::{FutureExt, future::BoxFuture};
use kith_types::PartitionId;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is refused and not carried out.
    Refused,
    /// The request is lost and not carried out, but its sender does not know that.
    RequestLost,
    /// The request is carried out, but its answer is lost.
    AnswerLost,
    /// The sender gives up on the request, which arrives after the write has ended without it.
    Late,
    /// The process of the sender dies before it sends the request.
    DiesBefore,
    /// The request is carried out, but the process of the sender dies before it gets the answer.
    DiesAfter,
    /// The process of the sender dies, and the request arrives after the write has ended without it.
    DiesLate,
    /// The request arrives after another node has become the leader in place of the sender.
    Deposed,
}

impl Fault {
    pub const ALL: [Fault; 8] = [
        Fault::Refused,
        Fault::RequestLost,
        Fault::AnswerLost,
        Fault::Late,
        Fault::DiesBefore,
        Fault::DiesAfter,
        Fault::DiesLate,
        Fault::Deposed,
    ];
}

/// An action that a fault requests from the cluster.
pub enum FaultAction {
    Death {
        node: usize,
        done: oneshot::Sender<()>,
    },
    Successors {
        partitions: Vec<PartitionId>,
        done: oneshot::Sender<()>,
    },
    /// A check of the rows before a step.
    Look {
        done: oneshot::Sender<()>,
    },
}

/// A step of a write: the node that takes it, its name, and the partitions that it concerns.
pub struct Step {
    pub node: usize,
    pub what: &'static str,
    pub partitions: Vec<PartitionId>,
}

/// The planned faults, and the steps that were taken.
pub struct FailPlan {
    state: Mutex<State>,
    wanted: mpsc::UnboundedSender<FaultAction>,
}

#[derive(Default)]
struct State {
    /// Whether steps are recorded and may fail.
    is_on: bool,
    looks: bool,
    /// The planned faults. The number of a fault counts the steps that succeed before it.
    faults: VecDeque<(usize, Fault)>,
    /// The names of the steps since faults were planned.
    taken: Vec<&'static str>,
    /// The requests that have not arrived yet.
    late: Vec<BoxFuture<'static, ()>>,
}

impl FailPlan {
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<FaultAction>) {
        let (wanted, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { state: Mutex::default(), wanted }), receiver)
    }

    /// Plans faults. The number of a fault counts the successful steps between the fault before it and this one.
    pub fn begin(&self, faults: &[(usize, Fault)]) {
        let mut state = self.state.lock();
        state.faults = faults.iter().copied().collect();
        state.looks = faults.is_empty();
        state.is_on = true;
    }

    /// Ends the plan. Returns whether all faults have happened, and the names of the steps that were taken.
    pub fn end(&self) -> (bool, Vec<&'static str>) {
        let mut state = self.state.lock();
        let have_happened = state.faults.is_empty();
        state.faults.clear();
        state.is_on = false;
        (have_happened, std::mem::take(&mut state.taken))
    }

    /// Carries out the requests that have not arrived yet.
    pub async fn arrive(&self) {
        let late = std::mem::take(&mut self.state.lock().late);
        for request in late {
            request.await;
        }
    }

    /// Whether there are requests that have not arrived yet.
    pub fn has_late(&self) -> bool {
        !self.state.lock().late.is_empty()
    }

    /// Whether rows are checked before each step, which is so if no faults were planned.
    fn looks(&self) -> bool {
        let state = self.state.lock();
        state.is_on && state.looks
    }

    fn take(&self, step: &Step) -> Option<Fault> {
        let mut state = self.state.lock();
        if !state.is_on {
            return None;
        }
        state.taken.push(step.what);
        let (left, fault) = state.faults.front_mut()?;
        if 0 < *left {
            *left -= 1;
            return None;
        }
        let fault = *fault;
        state.faults.pop_front();
        Some(fault)
    }

    /// Takes a step: carries out `request`, unless a fault is due. `refused` and `lost` are the errors that the sender gets
    /// in this case.
    pub async fn step<T: Send + 'static, E>(
        &self,
        step: Step,
        request: BoxFuture<'static, Result<T, E>>,
        refused: E,
        lost: E,
    ) -> Result<T, E>
    where
        E: Send + 'static,
    {
        if let Some(fault) = self.take(&step) {
            return self.fail(fault, step, request, (refused, lost)).await;
        }
        if self.looks() {
            self.want(|done| FaultAction::Look { done }).await;
        }
        request.await
    }

    async fn fail<T: Send + 'static, E: Send + 'static>(
        &self,
        fault: Fault,
        step: Step,
        request: BoxFuture<'static, Result<T, E>>,
        (refused, lost): (E, E),
    ) -> Result<T, E> {
        match fault {
            Fault::Refused => Err(refused),
            Fault::RequestLost => Err(lost),
            Fault::AnswerLost => {
                let _ = request.await;
                Err(lost)
            }
            Fault::Late => {
                self.state.lock().late.push(request.map(drop).boxed());
                Err(lost)
            }
            Fault::DiesBefore => {
                self.die(step.node).await;
                Err(lost)
            }
            Fault::DiesAfter => {
                let _ = request.await;
                self.die(step.node).await;
                Err(lost)
            }
            Fault::DiesLate => {
                self.state.lock().late.push(request.map(drop).boxed());
                self.die(step.node).await;
                Err(lost)
            }
            Fault::Deposed => {
                let partitions = step.partitions;
                self.want(|done| FaultAction::Successors { partitions, done }).await;
                request.await
            }
        }
    }

    /// Ends the process of a node. If the caller runs in this process, it ends too.
    async fn die(&self, node: usize) {
        self.want(|done| FaultAction::Death { node, done }).await;
    }

    async fn want(&self, wanted: impl FnOnce(oneshot::Sender<()>) -> FaultAction) {
        let (done, is_done) = oneshot::channel();
        let _ = self.wanted.send(wanted(done));
        let _ = is_done.await;
    }
}
