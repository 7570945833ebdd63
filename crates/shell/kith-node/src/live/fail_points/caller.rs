//! A caller, which sends writes to the current leader and repeats writes whose outcome is unknown.

use super::{
    GRAPH, LOOK, TIMEOUT,
    election::leaders,
    faulty::Processes,
    plan::{FailPlan, Step},
};
use futures::FutureExt;
use kith_cluster::metadata::EmbeddedMetadata;
use kith_live::{CompletedWrite, GraphTypes, Ticket, Write, ordering_partition};
use kith_query::{
    QueryError, QueryOptions,
    convert::{write_to_wire, written_from_wire},
};
use kith_types::{ErrorCode, PartitionCount};
use kith_wire::v1;
use std::{sync::Arc, time::Instant};
use tonic::Status;

pub struct Caller {
    pub plan: Arc<FailPlan>,
    pub processes: Processes,
    pub metadata: Arc<EmbeddedMetadata>,
    pub types: Arc<GraphTypes>,
    pub count: PartitionCount,
}

/// The outcome of a write as its caller learns it.
#[derive(Debug)]
pub enum CallerOutcome {
    Done(CompletedWrite, Ticket),
    /// A condition did not hold.
    Refused(ErrorCode),
    /// Nothing was written, for another reason.
    Nothing(ErrorCode),
}

impl Caller {
    /// Sends a write, and repeats it until its outcome is known.
    pub async fn write(&self, write: &Write) -> CallerOutcome {
        let (started, mut is_repeat) = (Instant::now(), false);
        loop {
            let status = match self.attempt(write).await {
                Ok(reply) => {
                    let written = written_from_wire(reply).expect("nodes write tickets");
                    return CallerOutcome::Done(written.done, written.ticket);
                }
                Err(status) => status,
            };
            match kith_wire::code_of(&status) {
                code @ (ErrorCode::ConditionFailed | ErrorCode::ObjectExists) => {
                    return CallerOutcome::Refused(code);
                }
                // The error of a repeat does not tell the outcome of the first attempt.
                code if code != ErrorCode::OutcomeUnknown && !is_repeat => {
                    return CallerOutcome::Nothing(code);
                }
                _ => is_repeat = true,
            }
            assert!(started.elapsed() < TIMEOUT, "the outcome stays unknown: {write:?}: {status}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Calls [`Self::write`], and calls it again if nothing was written.
    pub async fn insist(&self, write: &Write) -> CallerOutcome {
        let started = Instant::now();
        loop {
            match self.write(write).await {
                CallerOutcome::Nothing(code) => assert!(started.elapsed() < TIMEOUT, "{write:?}: {code}"),
                outcome => return outcome,
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn attempt(&self, write: &Write) -> Result<v1::GraphWriteReply, Status> {
        let partition = ordering_partition(write, &self.types, self.count).expect("it makes sense");
        let leader = leaders(&self.metadata).await.of(partition);
        let node = leader.map_or(0, |leader| leader.node.0 as usize);
        let (handle, graphs) = self.processes.lock()[node].clone();
        let lost = || QueryError::OutcomeUnknown { detail: "a test lost it".to_owned() }.to_status();
        let request = write_to_wire(GRAPH, write, &QueryOptions::default());
        let request = async move {
            let written = handle.spawn(async move { graphs.write(request).await });
            written.await.unwrap_or_else(|_| Err(lost()))
        };
        let refused = kith_wire::status(ErrorCode::Overloaded, "a test refuses it", "repeat it");
        let step = Step { node, what: "write", partitions: vec![partition] };
        self.plan.step(step, request.boxed(), refused, lost()).await
    }
}
