//! Vertices that are sought by their properties, found by the indexes of their types.

use super::{reads::LiveReads, rows::known_vertex};
use crate::gremlin::rows::unexpected;
use kith_gremlin::{
    GremlinError,
    value::{Value, Vertex},
};
use kith_live::{GraphTypes, ObjectFind, ObjectType, field_values::to_json};
use kith_operators::{Operator, Value as Evaluated};
use kith_traversal::{evaluate::of_vertices, graph::VertexSearch};
use std::sync::Arc;

impl LiveReads<'_> {
    /// The vertices that have the wanted properties: one fan-out for each type that may have such vertices. `None` if one of
    /// these types has no index for any of the properties.
    pub(super) async fn sought_vertices(
        &self,
        sought: &VertexSearch,
    ) -> Result<Option<Vec<Arc<Vertex>>>, GremlinError> {
        let Some(finds) = self.finds(sought) else { return Ok(None) };
        let mut found = Vec::new();
        for find in finds {
            let (kind, shown): (Arc<str>, _) = (Arc::from(find.kind.as_str()), self.unread());
            let plan = Operator::Find(Box::new(find));
            let purpose = "sought vertices";
            let answered = match sought.latest {
                true => self.fan_outs.ask_everyone_for_latest(purpose, plan).await?,
                false => self.fan_outs.ask_everyone(purpose, plan).await?,
            };
            match answered {
                Evaluated::Set(ids) => {
                    self.meter.lend(of_vertices(ids.len()))?;
                    found.extend(ids.into_iter().map(|id| known_vertex(id, kind.clone(), shown.clone())));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(Some(found))
    }

    /// The searches of the indexes that find what is sought; `None` if the indexes do not suffice.
    fn finds(&self, sought: &VertexSearch) -> Option<Vec<ObjectFind>> {
        let is_wanted = |kind: &&ObjectType| {
            sought.labels.is_empty() || sought.labels.iter().any(|label| **label == *kind.name)
        };
        let mut finds = Vec::new();
        let types = self.types();
        for kind in types.objects.values().filter(is_wanted) {
            if kind.open {
                return None;
            }
            let has = |key: &str| kind.schemas.last().is_some_and(|schema| schema.index_of(key).is_some());
            // No object of a type has a property for which the type has no field.
            if sought.properties.iter().all(|(key, _)| has(key)) {
                finds.push(self.find(&types, kind, sought)?);
            }
        }
        Some(finds)
    }

    fn find(&self, types: &GraphTypes, kind: &ObjectType, sought: &VertexSearch) -> Option<ObjectFind> {
        let indexed = |(key, value): &(Arc<str>, Value)| {
            let schema = kind.schemas.last()?;
            let field = &schema.fields()[schema.index_of(key)?];
            kind.index_of(key)?;
            // A value of another type may still be equal to a value of the field, such as 1.0 to 1.
            let json = to_json(field.field_type(), value)?.to_string();
            // The index has no null and no number that is out of the field's range.
            types.find_key(&kind.name, key, &json).ok()?;
            Some((key.to_string(), json))
        };
        let (field, value) = sought.properties.iter().find_map(indexed)?;
        let limit = Some(self.elements_max.saturating_add(1));
        Some(ObjectFind { kind: kind.name.clone(), field, values: vec![value], after: None, limit })
    }
}
