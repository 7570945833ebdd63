//! `kith mget --stream` and `kith compute --stream`: print records as they arrive, then a footer that accounts for every
//! key.

use crate::{
    failure::{Exit, Failure},
    output::{self, Format},
    reply::{ComputeContext, ComputedReply, KeyReply, StreamFooterLine, Values, key_name},
};
use anyhow::Context;
use futures::StreamExt;
use kith_client::{BatchKeys, BatchPiece, BatchStream, QueryError, Service, StoreShape, StreamItem};
use kith_operators::Record;
use kith_query::line::{BatchFields, ComputeFields, StoreLine};
use kith_schema::{Schema, ValueType};
use kith_types::ErrorCode;
use serde_json::Value;
use std::io::Write;

/// Refuses an output format that cannot be printed record by record.
///
/// # Errors
/// If the format is not JSON.
pub fn check_format(format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        return Ok(());
    }
    let message = "--stream prints a line of JSON for each record as it arrives";
    Err(Failure::usage(message, "add `-o json`"))
}

/// Writes a line for each key, in the order in which they arrive, and then the footer.
///
/// # Errors
/// If the service does not answer, or the stream ends without a footer. Records that arrived before are written.
pub async fn write(
    service: &dyn Service,
    batch: &StoreLine<BatchFields>,
    out: &mut impl Write,
) -> anyhow::Result<Exit> {
    let asked = &batch.keys;
    let shape = service.shape(&asked.store).await?;
    let keys = asked.of_type(shape.key)?;
    let options = batch.options.query_options();
    let items = service.multi_get_stream(&asked.store, &keys, &options);
    let mut schema = None;
    write_all(items, out, async |piece| {
        if schema.is_none() {
            schema = schema_of(service, &asked.store, shape, &piece).await?;
        }
        let values = Values { store: &asked.store, value: shape.value, schema: schema.as_ref() };
        let line = |key, record: Record<'_>| Ok(output::json_line(&KeyReply::new(&values, key, record)));
        lines(&piece, &keys, &asked.keys, line)
    })
    .await
}

/// Like [`write()`], with the results of a plan over the records.
///
/// # Errors
/// The errors of [`write()`].
pub async fn write_computed(
    service: &dyn Service,
    StoreLine { keys: asked, fields, options }: &StoreLine<ComputeFields>,
    out: &mut impl Write,
) -> anyhow::Result<Exit> {
    let shape = service.shape(&asked.store).await?;
    let (keys, query, options) = (asked.of_type(shape.key)?, fields.query(), options.query_options());
    let items = service.read_compute_stream(&asked.store, &keys, &query, &options);
    write_all(items, out, async |piece| {
        let computed = ComputeContext { store: &asked.store, query: &query, result: piece.result.as_deref() };
        let line =
            |key, record: Record<'_>| Ok(output::json_line(&ComputedReply::new(&computed, key, record)?));
        lines(&piece, &keys, &asked.keys, line)
    })
    .await
}

async fn write_all(
    mut items: BatchStream<'_>,
    out: &mut impl Write,
    mut lines: impl AsyncFnMut(BatchPiece) -> anyhow::Result<String>,
) -> anyhow::Result<Exit> {
    while let Some(item) = items.next().await {
        match item? {
            StreamItem::Piece(piece) => put(out, &lines(piece).await?)?,
            StreamItem::Footer(footer) => {
                let line = StreamFooterLine::from(*footer);
                put(out, &output::json_line(&line))?;
                return Ok(if line.is_complete() { Exit::Done } else { Exit::Partial });
            }
        }
    }
    Err(Failure::new(
        ErrorCode::Internal,
        "the stream ended without a footer",
        "please report it with the log",
    )
    .into())
}

fn lines(
    piece: &BatchPiece,
    keys: &BatchKeys,
    given: &[Value],
    line: impl Fn(Value, Record<'_>) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    let records = piece.positions.iter().zip(piece.records.iter());
    records.map(|(position, record)| line(key_name(keys, given, *position as usize), record)).collect()
}

fn put(out: &mut impl Write, text: &str) -> anyhow::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write standard output")
}

/// Returns the schema that decodes the records of a stream. It is called when the first values arrive. `None` if there is
/// nothing to decode.
async fn schema_of(
    service: &dyn Service,
    store: &str,
    shape: StoreShape,
    piece: &BatchPiece,
) -> Result<Option<Schema>, QueryError> {
    match piece.schema {
        Some(id) if shape.value == ValueType::Record && 0 < piece.records.counts().found => {
            service.schema(store, piece.version, id).await.map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;
    use kith_query::line::{ReadOptions, StoreKeys};

    async fn written(keys: &[&str], partial: bool) -> (Vec<Value>, Option<Exit>) {
        let keys = keys.iter().map(|key| Value::from(*key)).collect();
        let keys = StoreKeys { store: "people".to_owned(), keys, key_encoding: None };
        let options = ReadOptions { partial, ..ReadOptions::default() };
        let batch = StoreLine { keys, fields: BatchFields {}, options };
        let mut out = Vec::new();
        let exit = write(&Fake, &batch, &mut out).await.ok();
        let text = String::from_utf8(out).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), exit)
    }

    #[tokio::test]
    async fn lines_carry_their_keys_and_the_footer_comes_last() {
        let (lines, exit) = written(&["a", "none", "b"], false).await;
        let states: Vec<String> =
            lines[..3].iter().map(|line| format!("{} {}", line["key"], line["state"])).collect();
        assert_eq!(states, [r#""b" "FOUND""#, r#""none" "ABSENT""#, r#""a" "FOUND""#]);
        assert_eq!((&lines[3]["footer"]["status"], exit), (&Value::from("OK"), Some(Exit::Done)));
        let (lines, exit) = written(&["lost", "a"], true).await;
        assert_eq!((&lines[2]["footer"]["status"], exit), (&Value::from("PARTIAL"), Some(Exit::Partial)));
        assert_eq!(lines[2]["footer"]["failures"][0]["class"], "deadline_exceeded");
    }

    #[tokio::test]
    async fn what_came_before_an_error_is_written() {
        let (lines, exit) = written(&["lost", "a", "b"], false).await;
        assert_eq!((lines.len(), exit), (2, None));
    }
}
