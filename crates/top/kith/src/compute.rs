//! `kith compute` and `kith aggregate`: computations over records on the nodes that hold them.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    read::{Shapes, is_wrong_keys},
    reply::{AggregateReply, ComputeReply},
    stream,
    table::compute as tables,
};
use clap::Args;
use kith_client::{BATCH_KEYS_MAX, Service};
use kith_query::line::{
    AggregateFields, BucketFields, ByBucketFields, ByValueFields, ComputeFields, ComputeLocation,
    CountFields, KeyEncoding, ReadOptions, StoreKeys, StoreLine, TopKFields, VectorFields, predicate_of,
    single_precision,
};
use kith_schema::compute::Bucket;
use kith_terminal::keys::read_keys;
use std::{fs, io, path::PathBuf};

#[derive(Clone, Debug, Args)]
pub struct ComputeFlags {
    /// Return a field as it is; may be repeated
    #[arg(long, value_name = "FIELD")]
    project: Vec<String>,
    /// Dot product of a vector field and a query vector: `embed:[0.1,2]`, `score=embed:@query.json`
    #[arg(long, value_name = "[NAME=]FIELD:VECTOR", value_parser = vector)]
    dot: Vec<VectorFields>,
    /// Cosine similarity of a vector field and a query vector
    #[arg(long, value_name = "[NAME=]FIELD:VECTOR", value_parser = vector)]
    cosine: Vec<VectorFields>,
    /// Element-wise (Hadamard) product of a vector field and a query vector
    #[arg(long, value_name = "[NAME=]FIELD:VECTOR", value_parser = vector)]
    hadamard: Vec<VectorFields>,
    /// Count the items of a list, map or vector
    #[arg(long, value_name = "[NAME=]FIELD", value_parser = count)]
    count: Vec<CountFields>,
    /// Return only this many records: those with the greatest value of --by
    #[arg(long, value_name = "K", requires = "by")]
    top_k: Option<u32>,
    /// What to rank records by: the name of a computed value, or a field
    #[arg(long, value_name = "NAME", requires = "top_k")]
    by: Option<String>,
    /// Print each result as it arrives, in any order, then an account of all keys; needs `-o json`
    #[arg(long, conflicts_with = "top_k")]
    stream: bool,
    // This field stays last, because its query options have a help heading of their own.
    #[command(flatten)]
    records: RecordFlags,
}

#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("counted").required(true))]
pub struct AggregateFlags {
    /// Count how often each value of a field occurs; of a list, each item counts
    #[arg(long, value_name = "FIELD", group = "counted")]
    count_by_value: Option<String>,
    /// How many values to print, the most frequent first
    #[arg(long, value_name = "K", default_value_t = 10, conflicts_with = "count_by_bucket")]
    top: u32,
    /// Count the values of a field that are in each --bucket
    #[arg(long, value_name = "FIELD", group = "counted", requires = "bucket")]
    count_by_bucket: Option<String>,
    /// A bucket, such as `young={"lt":18}`; may be repeated
    #[arg(long, value_name = "NAME=PREDICATE", value_parser = bucket, requires = "count_by_bucket", conflicts_with = "count_by_value")]
    bucket: Vec<BucketFields>,
    // This field stays last, because its query options have a help heading of their own.
    #[command(flatten)]
    records: RecordFlags,
}

// The records, and where and how to compute over them.
#[derive(Clone, Debug, Args)]
struct RecordFlags {
    /// The store
    store: String,
    /// A file of keys, one per line; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    keys_from: PathBuf,
    /// How string or byte keys are written [default: text for strings, base64 for bytes]
    #[arg(long, value_enum, value_name = "ENCODING")]
    key_encoding: Option<KeyEncoding>,
    /// Where to compute
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    at: ComputeLocation,
    #[command(flatten)]
    options: ReadOptions,
}

impl RecordFlags {
    /// Reads the file of keys and builds the request for them.
    fn ask<F>(self, fields: F) -> anyhow::Result<StoreLine<F>> {
        let keys = read_keys(&self.keys_from, BATCH_KEYS_MAX)?;
        let keys = StoreKeys { store: self.store, keys, key_encoding: self.key_encoding };
        Ok(StoreLine { keys, fields, options: self.options })
    }
}

/// Prints the results of a plan over the records of keys, and how many keys were found, absent or unanswered.
///
/// # Errors
/// If the keys cannot be read, the plan does not fit the records, or the service does not answer.
pub async fn compute(target: &TargetFlags, format: Format, flags: ComputeFlags) -> anyhow::Result<Exit> {
    if flags.stream {
        stream::check_format(format)?;
    }
    let fields = ComputeFields {
        at: flags.records.at,
        project: flags.project,
        dot: flags.dot,
        cosine: flags.cosine,
        hadamard: flags.hadamard,
        count: flags.count,
        top_k: flags.top_k.zip(flags.by).map(|(k, by)| TopKFields { by, k }),
    };
    let asked = flags.records.ask(fields)?;
    let service = connect::service(target).await?;
    if flags.stream {
        return stream::write_computed(&*service, &asked, &mut io::stdout()).await;
    }
    let reply = Shapes::default().compute(&*service, &asked).await?;
    let text = match format {
        Format::Json => output::json_lines(&reply.results, &reply.last),
        Format::Table => tables::results(&reply),
    };
    output::print_bytes(text.as_bytes())?;
    Ok(if reply.last.is_complete() { Exit::Done } else { Exit::Partial })
}

/// Prints counts over the records of keys.
///
/// # Errors
/// The same as those of [`compute`].
pub async fn aggregate(target: &TargetFlags, format: Format, flags: AggregateFlags) -> anyhow::Result<Exit> {
    let (top, buckets) = (flags.top, flags.bucket);
    let fields = AggregateFields {
        at: flags.records.at,
        count_by_value: flags.count_by_value.map(|field| ByValueFields { field, top }),
        count_by_bucket: flags.count_by_bucket.map(|field| ByBucketFields { field, buckets }),
    };
    let asked = flags.records.ask(fields)?;
    let service = connect::service(target).await?;
    let reply = Shapes::default().aggregate(&*service, &asked).await?;
    output::print(format, &reply, tables::counts)?;
    Ok(if reply.last.is_complete() { Exit::Done } else { Exit::Partial })
}

impl Shapes {
    /// Evaluates a plan over the records of keys.
    ///
    /// # Errors
    /// If there is no such store, a key does not fit the store's key type, the plan does not fit its records, or the service
    /// does not answer.
    pub async fn compute(
        &self,
        service: &dyn Service,
        asked: &StoreLine<ComputeFields>,
    ) -> anyhow::Result<ComputeReply> {
        match self.try_compute(service, asked).await {
            // A store of this name may have been dropped and created again with another key type.
            Err(error) if is_wrong_keys(&error) && self.forget(&asked.keys.store) => {
                self.try_compute(service, asked).await
            }
            answered => answered,
        }
    }

    async fn try_compute(
        &self,
        service: &dyn Service,
        StoreLine { keys: asked, fields, options }: &StoreLine<ComputeFields>,
    ) -> anyhow::Result<ComputeReply> {
        let shape = self.shape(service, &asked.store).await?;
        let (keys, query) = (asked.of_type(shape.key)?, fields.query());
        let answer = service.read_compute(&asked.store, &keys, &query, &options.query_options()).await?;
        self.remember(&asked.store, shape);
        Ok(ComputeReply::new(&asked.store, &query, &asked.keys, &keys, &answer)?)
    }

    /// Returns counts over the records of keys.
    ///
    /// # Errors
    /// The same as those of [`Shapes::compute`].
    pub async fn aggregate(
        &self,
        service: &dyn Service,
        asked: &StoreLine<AggregateFields>,
    ) -> anyhow::Result<AggregateReply> {
        match self.try_aggregate(service, asked).await {
            Err(error) if is_wrong_keys(&error) && self.forget(&asked.keys.store) => {
                self.try_aggregate(service, asked).await
            }
            answered => answered,
        }
    }

    async fn try_aggregate(
        &self,
        service: &dyn Service,
        StoreLine { keys: asked, fields, options }: &StoreLine<AggregateFields>,
    ) -> anyhow::Result<AggregateReply> {
        let query = fields.query()?;
        let shape = self.shape(service, &asked.store).await?;
        let keys = asked.of_type(shape.key)?;
        let answer = service.read_aggregate(&asked.store, &keys, &query, &options.query_options()).await?;
        self.remember(&asked.store, shape);
        Ok(AggregateReply::new(&query, &answer)?)
    }
}

/// Parses `[NAME=]FIELD:VECTOR`. Names and fields in this flag cannot contain `=` or `:`; for those that do, there is `kith
/// run`.
fn vector(text: &str) -> Result<VectorFields, String> {
    let (named, numbers) = text
        .split_once(':')
        .ok_or("expected a field, `:` and a vector, which is a list as [0.1,2] or @FILE")?;
    let (name, field) = name_and_field(named);
    let json = match numbers.strip_prefix('@') {
        Some(path) => {
            fs::read(path).and_then(kith_types::without_mark).map_err(|error| format!("{path}: {error}"))?
        }
        None => numbers.to_owned(),
    };
    let numbers: Vec<f64> = serde_json::from_str(&json)
        .map_err(|error| format!("the vector is not a list of numbers: {error}"))?;
    Ok(VectorFields { field, query: single_precision(&numbers)?, name })
}

fn count(text: &str) -> Result<CountFields, String> {
    let (name, field) = name_and_field(text);
    Ok(CountFields { field, name })
}

fn name_and_field(text: &str) -> (Option<String>, String) {
    match text.split_once('=') {
        Some((name, field)) => (Some(name.to_owned()), field.to_owned()),
        None => (None, text.to_owned()),
    }
}

fn bucket(text: &str) -> Result<BucketFields, String> {
    let (name, json) =
        text.split_once('=').ok_or("expected a name, `=` and a condition such as {\"lt\":18}")?;
    let json = serde_json::from_str(json).map_err(|error| format!("the condition is not JSON: {error}"))?;
    Ok(BucketFields(Bucket { name: name.to_owned(), predicate: predicate_of(json)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_written_in_place_or_in_a_file() {
        let plain = vector("embed:[1,-0.5]").unwrap();
        assert_eq!((plain.field.as_str(), plain.query, plain.name), ("embed", vec![1.0, -0.5], None));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "[3]\n").unwrap();
        let named = vector(&format!("score=embed:@{}", file.path().display())).unwrap();
        assert_eq!((named.query, named.name.as_deref()), (vec![3.0], Some("score")));
        fs::write(file.path(), "\u{feff}[3]\n").unwrap();
        assert_eq!(vector(&format!("embed:@{}", file.path().display())).unwrap().query, [3.0]);
        for odd in ["embed", "embed:", "embed:[1,\"a\"]", "embed:[1e40]", "embed:@/nowhere/at/all"] {
            assert!(vector(odd).is_err(), "{odd}");
        }
        assert_eq!(bucket("young={\"lt\":18}").unwrap().0.name, "young");
        assert!(bucket("young").is_err() && bucket("young={}").is_err());
    }
}
