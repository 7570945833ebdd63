//! `kith get` and `kith mget`: read values of a store by key.

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
    reply::{BatchReply, KeyReply, ProfileReply, Values},
    stream,
    table::{plan, values},
};
use clap::Args;
use kith_client::{BATCH_KEYS_MAX, BatchAnswer, QueryError, Service, StoreShape};
use kith_operators::Record;
use kith_query::line::{BatchFields, KeyEncoding, ReadOptions, StoreKeys, StoreLine};
use kith_schema::{Schema, ValueType};
use kith_terminal::keys::read_keys;
use kith_types::ErrorCode;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;
use std::{collections::HashMap, io, path::PathBuf};

#[derive(Clone, Debug, Args)]
pub struct GetFlags {
    /// The store
    store: String,
    /// The key: a number, text or base64, depending on the store's key type. Several keys are printed as `kith mget`
    /// prints them
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// How string or byte keys are written [default: text for strings, base64 for bytes]
    #[arg(long, value_enum, value_name = "ENCODING")]
    key_encoding: Option<KeyEncoding>,
    #[command(flatten)]
    options: ReadOptions,
}

#[derive(Clone, Debug, Args)]
pub struct MultiGetFlags {
    /// The store
    store: String,
    /// The keys: numbers, text or base64, depending on the store's key type
    #[arg(value_name = "KEY", required_unless_present = "keys_from")]
    keys: Vec<String>,
    /// A file of keys, one per line; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "keys")]
    keys_from: Option<PathBuf>,
    /// How string or byte keys are written [default: text for strings, base64 for bytes]
    #[arg(long, value_enum, value_name = "ENCODING")]
    key_encoding: Option<KeyEncoding>,
    /// Print each record as it arrives, in any order, then an account of all keys; needs `-o json`
    #[arg(long)]
    stream: bool,
    #[command(flatten)]
    options: ReadOptions,
}

/// The key and value types of stores. Each is fetched only once, because it is fixed when a store is created.
#[derive(Debug, Default)]
pub struct Shapes {
    known: Mutex<HashMap<String, StoreShape>>,
}

impl Shapes {
    /// Reads the keys of a batch.
    ///
    /// # Errors
    /// If there is no such store, a key does not fit the store's key type, or the service does not answer.
    pub async fn read(
        &self,
        service: &dyn Service,
        batch: &StoreLine<BatchFields>,
    ) -> anyhow::Result<BatchReply> {
        match self.try_read(service, batch).await {
            // A store of this name may have been dropped and created again with another key type.
            Err(error) if is_wrong_keys(&error) && self.forget(&batch.keys.store) => {
                self.try_read(service, batch).await
            }
            answered => answered,
        }
    }

    async fn try_read(
        &self,
        service: &dyn Service,
        batch: &StoreLine<BatchFields>,
    ) -> anyhow::Result<BatchReply> {
        let asked = &batch.keys;
        let shape = self.shape(service, &asked.store).await?;
        let keys = asked.of_type(shape.key)?;
        let answer = service.multi_get(&asked.store, &keys, &batch.options.query_options()).await?;
        self.remember(&asked.store, shape);
        let schema = schema_of(service, &asked.store, shape, &answer).await?;
        let values = Values { store: &asked.store, value: shape.value, schema: schema.as_ref() };
        Ok(BatchReply::new(&values, &asked.keys, &keys, &answer))
    }

    /// Returns the key and value types of a store, from memory or from the service.
    ///
    /// # Errors
    /// If there is no such value store.
    pub async fn shape(&self, service: &dyn Service, store: &str) -> Result<StoreShape, QueryError> {
        let known = self.lock().get(store).copied();
        match known {
            Some(shape) => Ok(shape),
            None => service.shape(store).await,
        }
    }

    /// Remembers the types of a store, after a call that used them has succeeded.
    pub fn remember(&self, store: &str, shape: StoreShape) {
        let mut known = self.lock();
        if !known.contains_key(store) {
            known.insert(store.to_owned(), shape);
        }
    }

    /// Forgets the types of a store. Returns whether they were known.
    pub fn forget(&self, store: &str) -> bool {
        self.lock().remove(store).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, StoreShape>> {
        self.known.lock()
    }
}

/// Returns the schema that decodes the records of an answer: that of the version that answered, which during a swap may
/// differ from the next answer's. `None` if there is nothing to decode.
async fn schema_of(
    service: &dyn Service,
    store: &str,
    shape: StoreShape,
    answer: &BatchAnswer,
) -> Result<Option<Schema>, QueryError> {
    let (Some(id), Some((_, version))) = (answer.schema, answer.served.first()) else { return Ok(None) };
    if shape.value != ValueType::Record || answer.counts().found == 0 {
        return Ok(None);
    }
    service.schema(store, *version, id).await.map(Some)
}

/// Whether the keys were parsed as another type than the store's key type.
pub fn is_wrong_keys(error: &anyhow::Error) -> bool {
    let code = error.downcast_ref::<QueryError>().map(QueryError::code);
    code == Some(ErrorCode::WrongKeyType)
        || error.downcast_ref::<Failure>().is_some_and(|failure| failure.code == ErrorCode::WrongKeyType)
}

/// Prints the value of one key, or the outcome of each of several keys.
///
/// # Errors
/// `key_not_found` if the only key is absent. Other errors if the keys cannot be read or the service does not answer.
pub async fn get(target: &TargetFlags, format: Format, flags: GetFlags) -> anyhow::Result<Exit> {
    let service = connect::service(target).await?;
    let keys = StoreKeys {
        store: flags.store,
        keys: flags.keys.into_iter().map(Value::from).collect(),
        key_encoding: flags.key_encoding,
    };
    if keys.keys.len() == 1 {
        return get_one(&*service, format, &keys, &flags.options).await;
    }
    print_all(&*service, format, &StoreLine { keys, fields: BatchFields {}, options: flags.options }).await
}

async fn get_one(
    service: &dyn Service,
    format: Format,
    asked: &StoreKeys,
    options: &ReadOptions,
) -> anyhow::Result<Exit> {
    let shape = service.shape(&asked.store).await?;
    let keys = asked.of_type(shape.key)?;
    let answer = service.multi_get(&asked.store, &keys, &options.query_options()).await?;
    let value = match answer.records.get(0) {
        Some(Record::Absent) => {
            let message = format!("store {:?} has no key {}", asked.store, asked.keys[0]);
            return Err(Failure::new(ErrorCode::KeyNotFound, message, "check the key").into());
        }
        Some(Record::Found(value)) => Some(value),
        _ => None,
    };
    let schema = schema_of(service, &asked.store, shape, &answer).await?;
    let values = Values { store: &asked.store, value: shape.value, schema: schema.as_ref() };
    let reply = BatchReply::new(&values, &asked.keys, &keys, &answer);
    let profile = reply.last.profile.as_ref();
    if let (Format::Table, Some(profile)) = (format, profile) {
        // Standard output is for the value alone.
        eprint!("{}", plan::render(profile));
    }
    match (format, value) {
        (Format::Table, Some(value)) => {
            let json = reply.results[0].value.json();
            output::print_bytes(&[json.map_or(value, str::as_bytes), b"\n"].concat())?;
        }
        _ => output::print(format, &OneKeyReply { key: &reply.results[0], profile }, |one| {
            values::table(std::slice::from_ref(one.key))
        })?,
    }
    Ok(if reply.last.is_complete() { Exit::Done } else { Exit::Partial })
}

/// The JSON that `kith get` prints for one key.
#[derive(Serialize)]
struct OneKeyReply<'a> {
    #[serde(flatten)]
    key: &'a KeyReply,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a ProfileReply>,
}

/// Prints the outcome of each key, and how many keys had each outcome.
///
/// # Errors
/// If the keys cannot be read, or the service does not answer.
pub async fn multi_get(target: &TargetFlags, format: Format, flags: MultiGetFlags) -> anyhow::Result<Exit> {
    if flags.stream {
        stream::check_format(format)?;
    }
    let keys = match &flags.keys_from {
        Some(file) => read_keys(file, BATCH_KEYS_MAX)?,
        None => flags.keys.into_iter().map(Value::from).collect(),
    };
    let service = connect::service(target).await?;
    let keys = StoreKeys { store: flags.store, keys, key_encoding: flags.key_encoding };
    let batch = StoreLine { keys, fields: BatchFields {}, options: flags.options };
    if flags.stream {
        return stream::write(&*service, &batch, &mut io::stdout()).await;
    }
    print_all(&*service, format, &batch).await
}

async fn print_all(
    service: &dyn Service,
    format: Format,
    batch: &StoreLine<BatchFields>,
) -> anyhow::Result<Exit> {
    let reply = Shapes::default().read(service, batch).await?;
    let text = match format {
        Format::Json => output::json_lines(&reply.results, &reply.last),
        Format::Table => values::table(&reply.results) + &values::footer(&reply.last),
    };
    output::print_bytes(text.as_bytes())?;
    Ok(if reply.last.is_complete() { Exit::Done } else { Exit::Partial })
}
