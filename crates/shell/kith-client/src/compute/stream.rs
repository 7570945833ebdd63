//! Computations over streamed records in this process, as `at: client` asks.

use super::{computation, internal, refuse_damaged, results};
use futures::StreamExt;
use kith_operators::RecordCounts;
use kith_query::{
    BatchKeys, BatchPiece, BatchStream, Outlet, QueryError, QueryOptions, Service, StreamItem, StreamStatus,
    driven,
};
use kith_schema::{
    Schema, SchemaId, ValueType,
    compute::{Computation, ComputePlan},
};
use std::sync::Arc;

/// Reads whole records through `service` as they arrive and computes here. The plan must not have `top_k`.
pub fn compute_stream_here<'a>(
    service: &'a (impl Service + ?Sized),
    store: &'a str,
    keys: &'a BatchKeys,
    plan: &'a ComputePlan,
    options: &'a QueryOptions,
) -> BatchStream<'a> {
    driven(async move |outlet: Outlet| {
        let value = service.shape(store).await?.value;
        if value != ValueType::Record {
            return Err(QueryError::NotRecords { store: store.to_owned(), value });
        }
        let mut items = service.multi_get_stream(store, keys, options);
        let mut working = None;
        let mut counts = RecordCounts::default();
        while let Some(item) = items.next().await {
            let item = match item? {
                StreamItem::Piece(piece) => {
                    let working = match &mut working {
                        Some(working) => working,
                        none => none
                            .insert(Working::new(service, store, plan, piece.version, piece.schema).await?),
                    };
                    let piece = working.out(keys, piece)?;
                    refuse_damaged(store, &piece.records, options)?;
                    add(&mut counts, piece.records.counts());
                    StreamItem::Piece(piece)
                }
                StreamItem::Footer(mut footer) => {
                    if working.is_none() && footer.schema.is_some() {
                        // A plan that does not fit is refused even if there are no keys.
                        Working::new(service, store, plan, footer.version, footer.schema).await?;
                    }
                    (footer.counts, footer.status) = (counts, StreamStatus::of(&counts));
                    StreamItem::Footer(footer)
                }
            };
            outlet.put(item).await;
        }
        Ok(())
    })
}

/// A plan that was checked against the schema of the version that answers.
struct Working {
    computation: Computation,
    schema: Schema,
    result: Arc<Schema>,
}

impl Working {
    async fn new(
        service: &(impl Service + ?Sized),
        store: &str,
        plan: &ComputePlan,
        version: u64,
        schema: Option<SchemaId>,
    ) -> Result<Self, QueryError> {
        let id = schema.ok_or_else(|| internal("records came without their schema".to_owned()))?;
        let schema = service.schema(store, version, id).await?;
        let computation = computation(plan, &schema)?;
        let result = Arc::new(computation.result().clone());
        Ok(Self { computation, schema, result })
    }

    fn out(&self, keys: &BatchKeys, piece: BatchPiece) -> Result<BatchPiece, QueryError> {
        let keys = keys.select(piece.positions.iter().map(|&position| position as usize));
        let (records, _) = results(&keys, piece.records, &self.computation, Some(&self.schema))?;
        let (schema, result) = (Some(self.result.id()), Some(Arc::clone(&self.result)));
        Ok(BatchPiece { records, schema, result, ..piece })
    }
}

fn add(counts: &mut RecordCounts, more: RecordCounts) {
    counts.found += more.found;
    counts.absent += more.absent;
    counts.error += more.error;
    counts.unanswered += more.unanswered;
}
