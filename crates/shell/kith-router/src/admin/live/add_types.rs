//! Adds the types that writes name to open graphs.

use super::{
    records::{TypesWrite, bad_schema, changed_meanwhile, check_not_dropping},
    schema::LiveGraphStore,
};
use kith_live::{Label, TypeKind};
use kith_topology::types_text;
use kith_wire::v1;
use tonic::Status;

/// The maximum number of times that the types are read again because another router has changed them meanwhile.
const ATTEMPTS_MAX: u32 = 32;

impl LiveGraphStore {
    /// Adds types to an open graph. Types that exist stay as they are, so several routers may add the same type at the same
    /// time.
    ///
    /// # Errors
    /// `bad_schema` if the graph is not open, a name is not allowed, or there are too many types; `out_of_range` if the
    /// graph would take more than it may; `unknown_graph`, `loaded_graph`; `conflict` if the graph is being dropped.
    pub(super) async fn add_types(
        &self,
        graph: &str,
        asked: &v1::AddTypes,
    ) -> Result<v1::SchemaOutcome, Status> {
        let of = |kind| move |name: &String| Label { kind, name: name.clone() };
        let objects = asked.objects.iter().map(of(TypeKind::Object));
        let associations = asked.associations.iter().map(of(TypeKind::Association));
        let labels: Vec<Label> = objects.chain(associations).collect();
        for _ in 0..ATTEMPTS_MAX {
            let (document, revision, types) = self.records.existing(graph).await?;
            check_not_dropping(&document)?;
            let (types, changes) = types.with_labels(&labels).map_err(|error| bad_schema(&error))?;
            let outcome = v1::SchemaOutcome {
                changes: changes.iter().map(ToString::to_string).collect(),
                revision: types.revision,
                ..Default::default()
            };
            if changes.is_empty() {
                return Ok(outcome);
            }
            let (reference, text) = types_text(&types);
            if let TypesWrite::At(_) =
                self.records.put_types(&document, revision, (&reference, &text)).await?
            {
                return Ok(outcome);
            }
        }
        Err(changed_meanwhile(graph))
    }
}
