//! The schemas that a client knows, by their hash: fetched once, checked against it, kept.

use kith_api::QueryError;
use kith_schema::{Schema, SchemaId};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc};

/// More than the stores of a cluster have among them; beyond it all are forgotten and fetched again.
const SCHEMAS_MAX: usize = 4_096;

/// Clones share what they know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    /// Held while looking and keeping only, never while fetching.
    known: Arc<Mutex<HashMap<SchemaId, Schema>>>,
}

impl Schemas {
    /// The schema with this hash, out of what `fetch` gives if it is not known yet.
    ///
    /// # Errors
    /// Those of `fetch`; [`QueryError::SchemaUnavailable`] if it gives another schema or nonsense.
    pub(crate) async fn get(
        &self,
        store: &str,
        version: u64,
        id: SchemaId,
        fetch: impl Future<Output = Result<String, QueryError>>,
    ) -> Result<Schema, QueryError> {
        if let Some(schema) = self.lock().get(&id) {
            return Ok(schema.clone());
        }
        let schema = checked(&fetch.await?, id);
        let schema = schema.map_err(|reason| {
            let store = store.to_owned();
            QueryError::SchemaUnavailable { store, version, reason }
        })?;
        let mut known = self.lock();
        if SCHEMAS_MAX <= known.len() {
            known.clear();
        }
        known.insert(id, schema.clone());
        Ok(schema)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SchemaId, Schema>> {
        self.known.lock()
    }
}

/// A schema decides what bytes mean: one that is not the right one to the last byte is none.
fn checked(text: &str, id: SchemaId) -> Result<Schema, String> {
    let schema: Schema = text.parse().map_err(|error| format!("what was sent is no schema: {error}"))?;
    match schema.id() {
        got if got == id => Ok(schema),
        got => Err(format!("schema {got} was sent where {id} is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    const ONE: &str = r#"{"fields":[{"name":"a","type":"text"}]}"#;
    const OTHER: &str = r#"{"fields":[{"name":"a","type":"bytes"}]}"#;

    #[tokio::test]
    async fn a_schema_is_fetched_once_and_only_the_right_one_is_kept() {
        let schemas = Schemas::default();
        let id = ONE.parse::<Schema>().unwrap().id();
        for wrong in [OTHER, "{"] {
            let refused = schemas.get("s", 1, id, async { Ok(wrong.to_owned()) }).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::SchemaUnavailable);
        }
        assert_eq!(schemas.get("s", 1, id, async { Ok(ONE.to_owned()) }).await.unwrap().id(), id);
        let known = schemas.clone().get("t", 9, id, async { panic!("it is known") }).await;
        assert_eq!(known.unwrap().id(), id);
    }
}
