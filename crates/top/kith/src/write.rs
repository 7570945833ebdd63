//! Writes to live graphs: `kith object add|update|delete`, `kith assoc add|delete|change-type`, and lines of `kith run`.

use crate::{
    ask,
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
};
use clap::Subcommand;
use kith_client::Service;
use kith_live::Ticket;
use kith_query::line::{Operations, ReadCommand, WriteCommand, WriteLine, WriteOperation};
use kith_terminal::ids;
use serde::Serialize;

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WriteReply {
    /// The id of a new object.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "ids::optional")]
    pub id: Option<u64>,
    /// The version of what was written; 0 if there was nothing to do.
    pub version: u64,
    /// A read with this ticket sees the write.
    #[serde(serialize_with = "as_text")]
    pub ticket: Ticket,
    /// Whether the object or association existed before; absent for a new object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existed: Option<bool>,
}

fn as_text<S: serde::Serializer>(ticket: &Ticket, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(ticket)
}

/// Carries out a write and prints its outcome.
///
/// # Errors
/// If nothing was written, or the outcome is unknown.
pub async fn run(target: &TargetFlags, format: Format, line: &WriteLine) -> anyhow::Result<Exit> {
    let service = connect::service(target).await?;
    let reply = write(&*service, line).await?;
    output::print(format, &reply, WriteReply::text)?;
    Ok(Exit::Done)
}

/// Carries out a write.
///
/// # Errors
/// The errors of [`run`].
pub async fn write(service: &dyn Service, line: &WriteLine) -> anyhow::Result<WriteReply> {
    let written = service.write(&line.options.graph, &line.write()?, &line.query_options()).await?;
    let is_new_object = matches!(line.operation, WriteOperation::ObjectAdd(_));
    Ok(WriteReply {
        id: is_new_object.then_some(written.done.id),
        version: written.done.version,
        ticket: written.ticket,
        existed: (!is_new_object).then_some(written.done.existed),
    })
}

impl WriteReply {
    fn text(&self) -> String {
        let what = match (self.id, self.version) {
            (Some(id), version) => format!("object {id}, version {version}"),
            (None, 0) => "nothing to do: it does not exist".to_owned(),
            (None, version) => format!("version {version}"),
        };
        format!("{what}\nticket {}\n", self.ticket)
    }
}

/// The commands of `kith object` and `kith assoc`.
#[derive(Debug, Subcommand)]
pub enum LiveCommand<R: Operations, W: Subcommand + Into<WriteOperation>> {
    #[command(flatten)]
    Read(Box<ReadCommand<R>>),
    #[command(flatten)]
    Write(WriteCommand<W>),
}

impl<R, W> LiveCommand<R, W>
where
    R: Operations,
    W: Subcommand + Into<WriteOperation>,
{
    /// Runs the command.
    ///
    /// # Errors
    /// The errors of [`ask::ask`] and [`run`].
    pub async fn run(self, target: &TargetFlags, format: Format) -> anyhow::Result<Exit> {
        match self {
            LiveCommand::Read(question) => ask::ask(target, format, &question.line).await,
            LiveCommand::Write(write) => run(target, format, &write.line).await,
        }
    }
}
