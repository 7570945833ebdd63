//! `kith graph connections|network|…`: asks one question and prints its answer.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    reply::GraphReply,
    table,
};
use kith_client::Service;
use kith_query::line::GraphLine;

/// Asks a question and prints the answer.
///
/// # Errors
/// If the question is invalid, or the service does not answer it.
pub async fn ask(target: &TargetFlags, format: Format, question: &GraphLine) -> anyhow::Result<Exit> {
    question.check()?;
    let service = connect::service(target).await?;
    let answer = answer(&*service, question).await?;
    let types = match format {
        Format::Table if table::answer::has_fields(&answer) => {
            // Without them, times are printed as numbers.
            connect::types(target, &question.options.graph).await.ok()
        }
        _ => None,
    };
    output::print(format, &answer, |answer| table::answer::render(answer, types.as_deref()))?;
    Ok(if answer.is_complete() { Exit::Done } else { Exit::Partial })
}

/// Returns the answer to a question.
///
/// # Errors
/// If the service does not answer the question.
pub async fn answer(service: &dyn Service, question: &GraphLine) -> anyhow::Result<GraphReply> {
    let (query, options) = (question.query(), question.query_options());
    let answered = service.query(&question.options.graph, &query, &options).await?;
    Ok(GraphReply::new(question, answered)?)
}

#[cfg(test)]
mod tests;
