//! Changes that read before they write: properties of edges, and vertices with their edges.

use super::{
    LiveGraph,
    fields::object_text,
    labels::{self, List},
    pages::{WholeRead, associations, whole_lists},
    reads::named_edge,
    rows::{edge_in, unknown_vertex},
    settle::first_error,
};
use crate::gremlin::fan_outs::FanOuts;
use futures::future::join_all;
use kith_gremlin::{
    GremlinError,
    value::{ElementId, Value},
};
use kith_live::{
    AssociationRead, AssociationsPlan, CompletedWrite, Conditions, ListedAssociation, Mutation as Write,
    Select,
};
use kith_operators::Operator;
use kith_query::QueryOptions;
use kith_types::{ErrorCode, OperationName};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The maximum number of attempts to set a property of an edge again if the edge has changed between the read and the
/// write.
const ATTEMPTS_MAX: u64 = 100;
/// The longest wait before another attempt, in milliseconds. Waits are random, so that callers who change the same edge do not
/// conflict again each time.
const WAIT_MAX_MS: u64 = 20;
/// The number of edges of a vertex that are removed at the same time.
const REMOVED_AT_ONCE: usize = 16;

/// The data of an association after one of its fields has got a value, which is JSON. A property of an open type that is null is
/// removed.
fn with_field(data: &str, key: &str, json: &str, is_open: bool) -> String {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(data).unwrap_or_default();
    let others = fields.into_iter().filter(|(other, _)| other != key);
    let mut fields: Vec<(String, String)> = others.map(|(key, json)| (key, json.to_string())).collect();
    if !is_open || json != "null" {
        fields.push((key.to_owned(), json.to_owned()));
    }
    object_text(fields)
}

impl LiveGraph<'_> {
    /// Sets a field of an edge: reads the association, and writes it back if it has not changed in between. `None` if there is no
    /// such edge.
    pub(super) async fn set_edge_field(
        &self,
        edge: &ElementId,
        key: &str,
        value: &Value,
    ) -> Result<Option<Value>, GremlinError> {
        let types = self.reads.types();
        let Some((list, id1, id2)) = named_edge(&types, edge) else { return Ok(None) };
        let json = self.edge_field(list.kind, key, value)?;
        let mut attempts = 0;
        loop {
            // A replica may answer with an older state, so after a conflict it is asked for the latest one.
            let Some(found) = self.association(&list, id1, id2, attempts != 0).await? else {
                return Ok(None);
            };
            let data = Some(with_field(found.data.as_deref().unwrap_or("{}"), key, &json, list.kind.open));
            let write = Write::AddAssociation {
                id1,
                kind: list.kind.name.clone(),
                id2,
                time: Some(found.time),
                data,
            };
            let unchanged = Conditions { if_version: found.version, if_exists: None };
            let write = self.writes.named(write, unchanged);
            match self.writes.send(&self.reads, &write, &format!("set {key:?} of edge {edge}")).await {
                Ok(_) => {
                    let label = Arc::from(list.label);
                    return Ok(Some(Value::Edge(edge_in(
                        &list,
                        &label,
                        &unknown_vertex(id1, self.reads.unread()),
                        &found,
                    ))));
                }
                Err(error) if error.code == ErrorCode::ConditionFailed && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                    let wait = rand::random_range(0..=attempts.min(WAIT_MAX_MS));
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                }
                Err(error) if error.code == ErrorCode::ConditionFailed => {
                    let message = format!(
                        "other callers changed edge {edge} before each of {} attempts to set {key:?}; try again when fewer \
                         callers change this edge",
                        ATTEMPTS_MAX + 1
                    );
                    return Err(GremlinError::new(ErrorCode::ConditionFailed, message));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// An association with its fields and its version.
    async fn association(
        &self,
        list: &List<'_>,
        id1: u64,
        id2: u64,
        is_critical: bool,
    ) -> Result<Option<ListedAssociation>, GremlinError> {
        let read = AssociationRead {
            kind: list.kind.name.clone(),
            select: Select::Ids { ids: vec![id2], high: None, low: None },
            with_data: true,
            with_versions: true,
        };
        let plan = Operator::Associations(Box::new(AssociationsPlan::of(vec![read])));
        let found = match is_critical {
            false => self.reads.fan_outs.ask_keys("an edge", &[id1], plan).await?,
            true => {
                let options = self.critical()?;
                let fan_outs = self.other_fan_outs(&options)?;
                let found = fan_outs.ask_keys("an edge", &[id1], plan).await;
                found.map_err(|error| self.take_over(&fan_outs, error))?
            }
        };
        let lists = associations(found, 1)?.into_iter().flatten();
        Ok(lists.flat_map(|(out, _)| out).next())
    }

    /// Removes a vertex, and before that its edges. The object goes last, so that a failure leaves a vertex that can be dropped
    /// again. Edges of one-sided types that lead to it stay, because no list says which they are.
    pub(super) async fn remove_vertex(&self, vertex: &ElementId) -> Result<(), GremlinError> {
        let Some(id) = self.number(vertex) else { return Ok(()) };
        let types = self.reads.types();
        let lists = labels::all_lists(&types);
        let options = self.critical()?;
        let fan_outs = self.other_fan_outs(&options)?;
        let wanted = WholeRead { with_properties: false, elements_max: u64::MAX };
        let found = whole_lists(&fan_outs, &[id], &lists, wanted).await;
        let found = found.map_err(|error| self.take_over(&fan_outs, error))?;
        let listed = lists.iter().zip(found.into_iter().flatten());
        let edges: Vec<(List<'_>, u64)> =
            listed.flat_map(|(list, out)| out.into_iter().map(|it| (*list, it.id2))).collect();
        for chunk in edges.chunks(REMOVED_AT_ONCE) {
            // All of them are awaited, also if one fails: nothing that was sent may be forgotten.
            first_error(join_all(chunk.iter().map(|(list, id2)| self.remove_listed(list, id, *id2))).await)?;
        }
        let write = self.writes.named(Write::DeleteObject { id }, Conditions::default());
        self.writes.send(&self.reads, &write, &format!("removed vertex {id}")).await?;
        self.scan.forget().await;
        Ok(())
    }

    async fn remove_listed(
        &self,
        list: &List<'_>,
        id1: u64,
        id2: u64,
    ) -> Result<CompletedWrite, GremlinError> {
        let (from, to) = if list.is_out { (id1, id2) } else { (id2, id1) };
        let what = format!("removed edge {from}>{}>{to}", list.label);
        let mutation = Write::DeleteAssociation { id1, kind: list.kind.name.clone(), id2 };
        self.writes.send(&self.reads, &self.writes.named(mutation, Conditions::default()), &what).await
    }

    /// The options of reads that must show every write that was confirmed before.
    fn critical(&self) -> Result<QueryOptions, GremlinError> {
        let deadline = Some(self.writes.time_left(&self.reads)?);
        Ok(QueryOptions { critical: true, partial: false, deadline, ..self.writes.options.clone() })
    }

    fn other_fan_outs<'o>(&'o self, options: &'o QueryOptions) -> Result<FanOuts<'o>, GremlinError> {
        let begun = self.writes.session.begin(&self.writes.graph, OperationName::GREMLIN, options);
        self.reads.checked(begun).map(|(run, _)| FanOuts::new(run.unpinned(), Arc::clone(&self.reads.meter)))
    }

    /// An error of other fan-outs as one of this traversal.
    fn take_over(&self, other: &FanOuts<'_>, error: GremlinError) -> GremlinError {
        match other.cause(&error) {
            Some(cause) => self.reads.fan_outs.error(cause),
            None => error,
        }
    }
}
