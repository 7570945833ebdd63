//! Verifies the object store's copy of a version on request. It reads the same bytes in the same way, and at the same rate,
//! as a fetch of this node.

use super::verify::Depth;
use crate::{
    serve::named::{unknown_version, version_named},
    versions::held::HeldStores,
};
use kith_cluster::{background, topology::TopologyReceiver};
use kith_wire::{
    documents::{ComponentDocument, ServedDocument},
    v1,
};
use std::{ops::ControlFlow, sync::Arc};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// One check of one version.
pub(crate) struct Check {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub topology: TopologyReceiver,
    pub store: ServedDocument,
    pub depth: Depth,
    pub sender: mpsc::Sender<Result<v1::VerifyProgress, Status>>,
}

impl Check {
    /// Waits for its turn. Ends early if the caller disconnects.
    pub async fn run(self, turns: Arc<Semaphore>) {
        let sender = self.sender.clone();
        let given_up = CancellationToken::new();
        let _given_up = given_up.clone().drop_guard();
        let looked = async {
            let Ok(_turn) = turns.acquire_owned().await else { return };
            // If no thread can run it, the stream ends without findings, which the caller does not take for an answer.
            let _ = background::run(move || self.look(&given_up)).await;
        };
        tokio::select! {
            () = looked => {}
            () = sender.closed() => {}
        }
    }

    fn look(&self, given_up: &CancellationToken) {
        let cluster = self.topology.borrow().cluster.cluster_id.clone();
        let mut done = 0;
        for component in &self.store.components {
            let looked = self.held.origins.verify_built(
                (&self.store.name, component, cluster.as_str()),
                self.depth,
                given_up,
                &mut |bytes| {
                    done += bytes;
                    // A slow reader misses progress reports, but never a finding.
                    let _ = self.sender.try_send(Ok(v1::VerifyProgress { bytes_done: done, finding: None }));
                    if given_up.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
            );
            let message = looked.and_then(|found| self.confirmed(component, found));
            let is_last = message.is_err();
            let message = message.map(|found| v1::VerifyProgress { bytes_done: done, finding: Some(found) });
            // The caller may have disconnected.
            if self.sender.blocking_send(message).is_err() || is_last {
                return;
            }
        }
    }

    /// Confirms a finding. A version that the cluster gave up meanwhile has been removed, which is not damage.
    fn confirmed(
        &self,
        component: &ComponentDocument,
        found: v1::ComponentFinding,
    ) -> Result<v1::ComponentFinding, Status> {
        let ServedDocument { name, version, .. } = &self.store;
        if found.state != "ok" && version_named(&self.topology.borrow(), name, *version).is_none() {
            return Err(unknown_version(self.node, name, *version));
        }
        if found.state != "ok" {
            let (component, location, state) = (&component.name, &found.place, &found.state);
            tracing::warn!(
                store = name,
                version,
                component,
                place = location,
                state,
                "the object store's copy is damaged or incomplete"
            );
        }
        Ok(found)
    }
}
