//! Which step of a write goes wrong, and how.

use futures::{FutureExt, future::BoxFuture};
use kith_types::PartitionId;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// What happens to the request of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused: nothing is done.
    Refused,
    /// It is lost: nothing is done, and whoever sent it does not know that.
    RequestLost,
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// It is given up, and arrives when everybody has gone on without it.
    Late,
    /// The process that sends it dies before it has sent it.
    DiesBefore,
    /// The process that sends it dies before it has the answer.
    DiesAfter,
    /// The process that sends it dies, and it arrives when everybody has gone on without it.
    DiesLate,
    /// It arrives when another node has taken over from the one that sent it.
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

/// What a fault wants from the cluster.
pub enum Wanted {
    Death {
        node: usize,
        done: oneshot::Sender<()>,
    },
    Successors {
        partitions: Vec<PartitionId>,
        done: oneshot::Sender<()>,
    },
    /// A look at the rows before a step.
    Look {
        done: oneshot::Sender<()>,
    },
}

/// A step: who takes it, what it is, and the partitions that it concerns.
pub struct Step {
    pub node: usize,
    pub what: &'static str,
    pub partitions: Vec<PartitionId>,
}

/// The faults that are to come.
pub struct Plan {
    state: Mutex<State>,
    wanted: mpsc::UnboundedSender<Wanted>,
}

#[derive(Default)]
struct State {
    /// Whether steps are counted.
    is_on: bool,
    looks: bool,
    /// How many steps go well before each fault.
    faults: VecDeque<(usize, Fault)>,
    /// The steps that were taken since faults were planned.
    taken: Vec<&'static str>,
    /// Requests that are still on their way.
    late: Vec<BoxFuture<'static, ()>>,
}

impl Plan {
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Wanted>) {
        let (wanted, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { state: Mutex::default(), wanted }), receiver)
    }

    /// Plans faults, each so many steps after the one before.
    pub fn begin(&self, faults: &[(usize, Fault)]) {
        let mut state = self.state.lock();
        state.faults = faults.iter().copied().collect();
        state.looks = faults.is_empty();
        state.is_on = true;
    }

    /// Plans no more. Whether all faults have happened, and the steps that were taken.
    pub fn end(&self) -> (bool, Vec<&'static str>) {
        let mut state = self.state.lock();
        let have_happened = state.faults.is_empty();
        state.faults.clear();
        state.is_on = false;
        (have_happened, std::mem::take(&mut state.taken))
    }

    /// Lets the requests arrive that are still on their way.
    pub async fn arrive(&self) {
        let late = std::mem::take(&mut self.state.lock().late);
        for request in late {
            request.await;
        }
    }

    /// Whether requests are on their way that nobody waits for.
    pub fn has_late(&self) -> bool {
        !self.state.lock().late.is_empty()
    }

    /// Rows are looked at before each step if no fault is planned.
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

    /// Takes a step: carries out `request`, unless a fault is due. `refused` and `lost` are what the sender is told then.
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
            self.want(|done| Wanted::Look { done }).await;
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
                self.want(|done| Wanted::Successors { partitions, done }).await;
                request.await
            }
        }
    }

    /// Ends a process, and thereby whoever calls this there.
    async fn die(&self, node: usize) {
        self.want(|done| Wanted::Death { node, done }).await;
    }

    async fn want(&self, wanted: impl FnOnce(oneshot::Sender<()>) -> Wanted) {
        let (done, is_done) = oneshot::channel();
        let _ = self.wanted.send(wanted(done));
        let _ = is_done.await;
    }
}
