//! `kith schema …`: creates live graphs and changes their types.

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    names::graph_name,
    output::{self, Format},
    who::who,
};
use clap::{Args, Subcommand};
use kith_types::ErrorCode;
use kith_wire::v1::{self, schema_command::Command as Ask};
use serde::Serialize;
use std::{fs, path::PathBuf};

#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Create a live graph with the types of a file, or change its types to those of the file
    Apply(ApplyFlags),
    /// Print the types of a live graph, as a file that `kith schema apply` reads
    Show {
        /// Name of the graph
        #[arg(short, long, value_name = "NAME", value_parser = graph_name)]
        graph: String,
    },
}

/// The file of types, and the live graph that they are for.
#[derive(Clone, Debug, Args)]
pub struct ApplyFlags {
    /// File with the types (TOML); docs/formats/graph-types.md describes it
    file: PathBuf,
    /// Name of the graph
    #[arg(short, long, value_name = "NAME", value_parser = graph_name)]
    graph: String,
    /// Where the rows of a new graph are to be: database:N, or mysql://HOST:PORT/DATABASE on a server that the
    /// configuration lists [default: the first database of the cluster]
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    storage: String,
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
}

/// The changes of a live graph, or those that would be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApplyReply {
    pub graph: String,
    /// Whether the graph is new.
    pub created: bool,
    /// The changes, one sentence each.
    pub changes: Vec<String>,
    /// The revision of the types; 1 for a new graph.
    pub revision: u64,
    pub storage: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// The types of a live graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ShowReply {
    graph: String,
    /// The TOML text that declares the types.
    types: String,
}

/// Runs a command.
///
/// # Errors
/// If the cluster does not answer, the file cannot be read, or the change is refused.
pub async fn run(target: &TargetFlags, format: Format, command: SchemaCommand) -> anyhow::Result<Exit> {
    match command {
        SchemaCommand::Apply(flags) => apply(target, format, flags).await?,
        SchemaCommand::Show { graph } => show(target, format, graph).await?,
    }
    Ok(Exit::Done)
}

async fn apply(target: &TargetFlags, format: Format, flags: ApplyFlags) -> anyhow::Result<()> {
    let text = fs::read(&flags.file).and_then(kith_types::without_mark).map_err(|error| {
        let message = format!("{} cannot be read: {error}", flags.file.display());
        Failure::new(ErrorCode::InputUnreadable, message, "check the path and its permissions")
    })?;
    let ApplyFlags { graph, storage, dry_run, .. } = flags;
    let apply = Ask::Apply(v1::ApplySchema { text, storage, dry_run });
    let router = connect::router(target).await?;
    let request = v1::SchemaCommand { graph: graph.clone(), who: who(), command: Some(apply) };
    let outcome = router.schema_of_graph(request).await?;
    let reply = ApplyReply {
        graph,
        created: outcome.is_new,
        changes: outcome.changes,
        revision: outcome.revision,
        storage: outcome.storage,
        dry_run,
    };
    output::print(format, &reply, ApplyReply::text)
}

async fn show(target: &TargetFlags, format: Format, graph: String) -> anyhow::Result<()> {
    let command = Some(Ask::Show(v1::ShowSchema {}));
    let request = v1::SchemaCommand { graph: graph.clone(), who: who(), command };
    let outcome = connect::router(target).await?.schema_of_graph(request).await?;
    output::print(format, &ShowReply { graph, types: outcome.text }, |reply| reply.types.clone())
}

impl ApplyReply {
    fn text(&self) -> String {
        let done = match (self.created, self.changes.is_empty(), self.dry_run) {
            (true, _, false) => "was created",
            (true, _, true) => "would be created",
            (false, true, _) => "has these types already",
            (false, false, false) => "has changed",
            (false, false, true) => "would change",
        };
        let mut text = format!(
            "live graph {:?} {done}; its rows are in {}; revision {} of its types\n",
            self.graph, self.storage, self.revision
        );
        for change in &self.changes {
            text.push_str(&format!("  {change}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_happened_or_would() {
        let reply = |created, changes: &[&str], dry_run| ApplyReply {
            graph: "social".to_owned(),
            created,
            changes: changes.iter().map(ToString::to_string).collect(),
            revision: 2,
            storage: "database:0".to_owned(),
            dry_run,
        };
        let first = |reply: ApplyReply| reply.text().lines().next().unwrap_or_default().to_owned();
        assert!(first(reply(true, &["x"], false)).starts_with("live graph \"social\" was created;"));
        assert!(first(reply(true, &["x"], true)).contains("would be created"));
        assert!(first(reply(false, &[], false)).contains("has these types already"));
        assert_eq!(reply(false, &["a is new", "b is new"], true).text().lines().nth(2), Some("  b is new"));
    }
}
