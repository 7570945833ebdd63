//! The schemas that a client has fetched, by their hash. Each is fetched once and checked against its hash.

use kith_query::QueryError;
use kith_schema::{Schema, SchemaId};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc};

/// The number of schemas that are cached, which is more than all stores of a cluster have. Beyond it, all are dropped
/// and fetched again.
const SCHEMAS_MAX: usize = 4_096;

/// A cache of schemas. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// The known schemas. The lock is held only for look-ups and inserts, never during a fetch.
    known: Arc<Mutex<HashMap<SchemaId, Schema>>>,
}

impl Schemas {
    /// Returns the schema with this hash. Calls `fetch` if it is not known yet.
    ///
    /// # Errors
    /// Those of `fetch`; [`QueryError::SchemaUnavailable`] if it returns another schema or an invalid one.
    pub async fn get(
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

/// Parses a schema and checks its hash. A schema decides what bytes mean, so it must match exactly.
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
