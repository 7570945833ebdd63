//! The properties of a loaded graph's members: the fields of a store of records that the graph is joined with.

use super::{fields, ids::VertexKey, notes, to_gremlin_error};
use crate::{session::Run, values::check_records};
use kith_client::compute::{computation, internal, refuse_damaged};
use kith_gremlin::{GremlinError, value::VertexProperty};
use kith_operators::{Operator, Record, Records, Value as Evaluated};
use kith_query::{FanOut, QueryError, Scope, Service};
use kith_schema::{KeyType, RecordView, Schema, ValueType, compute::ComputePlan};
use kith_topology::ValueStore;
use kith_traversal::{
    evaluate::Meter,
    graph::{Notes, WantedProperties},
};
use kith_types::FanOutKind;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use tokio::sync::Mutex;

/// The number of records that one fan-out reads. Records may be large, and an answer has a limit in bytes.
pub(super) const RECORDS_AT_ONCE: usize = 4_096;

/// Properties by member.
pub(super) type Properties = HashMap<u64, Vec<Arc<VertexProperty>>>;

/// A version of the store, pinned for one traversal.
pub(super) struct JoinedVersion<'a> {
    run: Mutex<Run<'a>>,
    known: Arc<ValueStore>,
    schema: Schema,
    /// Counts properties before they are made.
    meter: Arc<Meter>,
}

impl<'a> JoinedVersion<'a> {
    /// Pins the version that the run's topology serves.
    ///
    /// # Errors
    /// The store is gone, serves no version, or holds other values by now.
    pub async fn pin(run: Run<'a>, known: Arc<ValueStore>, meter: Arc<Meter>) -> Result<Self, QueryError> {
        let store = &known.pinned.name;
        let (ValueType::Record, Some(id)) = (known.value, known.schema) else {
            return Err(QueryError::NotRecords { store: store.clone(), value: known.value });
        };
        if known.key != KeyType::Id {
            let detail = format!(
                "the keys of store {store:?} are of type {}, but the members of a graph are ids; kith graph properties names another store",
                known.key.name()
            );
            return Err(QueryError::BadRequest { detail });
        }
        let schema = run.session().schema(store, known.pinned.version(), id).await?;
        Ok(Self { run: Mutex::new(run), known, schema, meter })
    }

    /// The wanted properties of members. A member without a record has none.
    pub async fn fetch(
        &self,
        members: BTreeSet<u64>,
        wanted: &WantedProperties,
    ) -> Result<Properties, GremlinError> {
        let Some((plan, schema)) = self.plan(wanted).map_err(|error| to_gremlin_error(&error))? else {
            return Ok(Properties::new());
        };
        let members: Vec<u64> = members.into_iter().collect();
        let mut found = Properties::new();
        for keys in members.chunks(RECORDS_AT_ONCE) {
            let records = self.records(keys, &plan).await.map_err(|error| to_gremlin_error(&error))?;
            self.meter.lend(records.bytes())?;
            for (&member, record) in keys.iter().zip(records.iter()) {
                if let Record::Found(bytes) = record {
                    let vertex = VertexKey::Member(member).vertex();
                    let damaged = |error: kith_schema::RecordError| {
                        let (store, detail) = (self.known.pinned.name.clone(), error.to_string());
                        to_gremlin_error(&QueryError::Damaged { store, detail })
                    };
                    let record = RecordView::new(&schema, bytes).map_err(damaged)?;
                    self.meter.lend(fields::size_of(record, bytes.len()))?;
                    found.insert(member, fields::properties_of(record, &vertex)?);
                }
            }
        }
        Ok(found)
    }

    /// The operator for the nodes, and the schema of its results. `None` if no field of the records is wanted.
    fn plan(&self, wanted: &WantedProperties) -> Result<Option<(Operator, Schema)>, QueryError> {
        let keys = match wanted {
            WantedProperties::None => return Ok(None),
            WantedProperties::All => return Ok(Some((Operator::Lookup, self.schema.clone()))),
            WantedProperties::Keys(keys) => keys,
        };
        let fields: BTreeSet<&str> =
            keys.iter().map(|key| &**key).filter(|key| self.schema.index_of(key).is_some()).collect();
        if fields.is_empty() {
            return Ok(None);
        }
        let plan = fields.into_iter().fold(ComputePlan::new(), |plan, field| plan.project(field));
        let computation = computation(&plan, &self.schema)?;
        Ok(Some((Operator::Compute(Arc::new(plan)), computation.result().clone())))
    }

    async fn records(&self, keys: &[u64], plan: &Operator) -> Result<Records, QueryError> {
        let kind = if keys.len() == 1 { FanOutKind::SingleKey } else { FanOutKind::NonUnion };
        let fan_out =
            FanOut { purpose: "properties", kind, scope: Scope::Keys(keys.to_vec()), plan: plan.clone() };
        let mut run = self.run.lock().await;
        let several = 1 < self.known.required_reads;
        let value = match several {
            true => run.ask_agreeing(&fan_out, self.known.required_reads).await?,
            false => run.ask(&fan_out).await?,
        };
        let (store, is_partial) = (&self.known.pinned.name, run.options().partial);
        let bytes_max = run.session().settings().answer_bytes_max;
        check_records(store, &value, several && !is_partial, bytes_max)?;
        let Evaluated::Records(records) = value else {
            return Err(internal(format!("a read of records was answered by {}", value.kind().name())));
        };
        refuse_damaged(store, &records, run.options())?;
        Ok(records)
    }

    /// Takes the notes about its fan-outs since the last call.
    pub fn take_notes(&self) -> Notes {
        self.run.try_lock().map(|mut run| notes::take(&mut run)).unwrap_or_default()
    }

    /// Its run, for the profile.
    pub fn into_run(self) -> Run<'a> {
        self.run.into_inner()
    }
}
