//! `kith explain connections|network|…`: the plan of a query, without running it.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    reply::ExplainReply,
    table,
};
use kith_lines::GraphLine;

/// Prints the plan of a question.
///
/// # Errors
/// If it has none.
pub async fn explain(target: &TargetFlags, format: Format, question: &GraphLine) -> anyhow::Result<Exit> {
    question.check()?;
    let service = connect::service(target).await?;
    let (query, options) = (question.query(), question.query_options());
    let reply = ExplainReply::from(service.explain(&question.options.graph, &query, &options).await?);
    output::print(format, &reply, table::plan::explain)?;
    Ok(Exit::Done)
}
