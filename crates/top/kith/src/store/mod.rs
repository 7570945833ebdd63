//! `kith store …`: manages stores and their versions. Graphs are stores too.

mod alter;
pub mod build;
mod create;
mod look;
mod push;
mod versions;

pub use build::{BuildReply, ChangesReply, DiscardReply, PartitionReply};
use kith_types::ErrorCode;
pub use look::{
    export::ExportReply,
    place::PlaceReply,
    verify::{ComponentReply, VerifyReply},
};
pub use push::{CancelReply, PushReply};

use crate::{
    confirm::{confirm_drop, print_dropped},
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    names::store_name,
    output::{self, Format},
    reply::stores::{FollowedReply, StoreReply, history},
    table::stores,
    who::who,
};
use alter::AlterFlags;
use anyhow::Context;
use clap::Subcommand;
use create::CreateFlags;
use kith_build::Shape;
use kith_client::{QueryError, RouterClient, Service};
use kith_schema::{Schema, SchemaId};
use kith_wire::{
    documents::{Document, StoreDocument, TopologyDocument},
    v1::{self, store_request::Command as Ask},
};

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Create a store of keys and values
    Create(CreateFlags),
    /// Change a store's quotas, guards, owner and retention while it serves
    Alter(AlterFlags),
    /// Build a version of a store from rows, into a folder
    ///
    /// Rows are CSV or TSV, JSON lines, Parquet, Arrow IPC or raw vectors, plain, .gz or .zst.
    Build(Box<build::BuildFlags>),
    /// Build one partition of a version, as one task of many
    BuildPartition(Box<build::PartitionFlags>),
    /// Assemble a version from partitions that were built one by one
    Assemble(Box<build::AssembleFlags>),
    /// Remove partitions that were built one by one, once a version has been assembled from them
    DiscardParts(build::DiscardFlags),
    /// Push rows or a built version as the next version of a store
    Push(Box<push::PushFlags>),
    /// List the stores, including graphs
    List,
    /// Show what a store holds, its version and the push under way
    Describe {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
    },
    /// Remove a store with all its versions
    Drop {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
        /// Do not ask for confirmation; required without a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Commands about versions: which are kept, and which is served.
    #[command(flatten)]
    Versions(versions::VersionsCommand),
    /// Show which nodes have a key, in which file, and which node answers now
    Where(look::place::PlaceFlags),
    /// Compare what every node has with what it should have; exit code 3 if something is wrong
    Verify(look::verify::VerifyFlags),
    /// Write every record of a version to JSON lines or Parquet
    Export(look::export::ExportFlags),
    /// Show who did what to a store
    History {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
    },
}

/// Runs a command.
///
/// # Errors
/// If the cluster does not answer, there is no such store or version, or the command is refused.
pub async fn run(target: &TargetFlags, format: Format, command: StoreCommand) -> anyhow::Result<Exit> {
    match command {
        StoreCommand::Where(flags) => return look::place::run(target, format, flags).await,
        StoreCommand::Verify(flags) => return look::verify::run(target, format, flags).await,
        StoreCommand::Export(flags) => return look::export::run(target, format, flags).await,
        StoreCommand::Versions(command) => versions::run(target, format, command).await?,
        StoreCommand::Build(flags) => build::run(target, format, &flags).await?,
        StoreCommand::BuildPartition(flags) => {
            tokio::task::block_in_place(|| build::build_partition(format, &flags))?;
        }
        StoreCommand::Assemble(flags) => {
            tokio::task::block_in_place(|| build::assemble_version(format, &flags))?;
        }
        StoreCommand::DiscardParts(flags) => {
            tokio::task::block_in_place(|| build::discard_parts(format, &flags))?;
        }
        StoreCommand::Push(flags) => push::run(target, format, &flags).await?,
        StoreCommand::Create(flags) => create(&connect::router(target).await?, format, &flags).await?,
        StoreCommand::Alter(flags) => alter(&connect::router(target).await?, format, &flags).await?,
        StoreCommand::List => list(&connect::router(target).await?, format).await?,
        StoreCommand::Describe { store } => {
            describe(&connect::router(target).await?, format, &store).await?;
        }
        StoreCommand::History { store } => {
            let history = history(&described(&connect::router(target).await?, &store).await?);
            output::print(format, &history, |history| stores::history(history))?;
        }
        StoreCommand::Drop { store, yes } => {
            drop_store(&connect::router(target).await?, format, store, yes).await?;
        }
    }
    Ok(Exit::Done)
}

async fn create(router: &RouterClient, format: Format, flags: &CreateFlags) -> anyhow::Result<()> {
    let definition =
        serde_json::to_vec(&flags.definition()?).expect("definitions hold only strings and numbers");
    let create = Ask::Create(v1::CreateStore { definition: definition.into() });
    let (document, _) = one(router, &flags.store, create).await?;
    output::print(format, &StoreReply::from(document), stores::describe)
}

async fn describe(router: &RouterClient, format: Format, store: &str) -> anyhow::Result<()> {
    let document = described(router, store).await?;
    let schema = served_schema(router, &document).await;
    let mut reply = StoreReply::from(document);
    reply.served_schema = schema?.map(|schema| schema.to_string());
    output::print(format, &reply, stores::describe)
}

/// Returns the schema of the records that a store serves; `None` if it serves no records, or no node that answers has their
/// schema.
async fn served_schema(router: &RouterClient, document: &StoreDocument) -> anyhow::Result<Option<Schema>> {
    let Some(current) = document.current() else { return Ok(None) };
    let Some(hash) = current.components.iter().find_map(|component| component.schema.as_deref()) else {
        return Ok(None);
    };
    let id: SchemaId = hash.parse().context("read the name of the version's schema")?;
    match router.schema(&document.name, current.version, id).await {
        Err(QueryError::SchemaUnavailable { .. }) => Ok(None),
        schema => Ok(Some(schema?)),
    }
}

/// Returns the types of a store. The schema of its current records comes from the nodes, which have it even if the object
/// store has lost the version. If no node gives it, for example because the caller may not read the store, the object store
/// is asked; with `or_none`, the schema is left out if that does not have it either.
///
/// # Errors
/// If the store is a graph, or nobody has the schema.
pub async fn shape_of(
    router: &RouterClient,
    document: &StoreDocument,
    topology: &TopologyDocument,
    or_none: bool,
) -> anyhow::Result<Shape> {
    let served = served_schema(router, document).await.ok().flatten();
    Ok(tokio::task::block_in_place(|| Shape::of(document, topology, served, or_none))?)
}

async fn alter(router: &RouterClient, format: Format, flags: &AlterFlags) -> anyhow::Result<()> {
    let (document, _) = one(router, &flags.store, Ask::Alter(flags.request())).await?;
    output::print(format, &StoreReply::from(document), stores::describe)
}

async fn list(router: &RouterClient, format: Format) -> anyhow::Result<()> {
    let reply = ask(router, "", Ask::List(v1::ListStores {})).await?;
    let all = documents(&reply)?.into_iter().map(StoreReply::from).collect::<Vec<_>>();
    output::print(format, &all, |all| stores::list(all))
}

async fn drop_store(router: &RouterClient, format: Format, store: String, yes: bool) -> anyhow::Result<()> {
    confirm_drop(&format!("store {store:?} with all its versions"), yes)?;
    ask(router, &store, Ask::Drop(v1::DropStore::default())).await?;
    print_dropped(format, store, None)
}

async fn ask(router: &RouterClient, store: &str, command: Ask) -> anyhow::Result<v1::StoreReply> {
    let request = v1::StoreRequest { store: store.to_owned(), who: who(), command: Some(command) };
    Ok(router.store(request).await?)
}

/// Sends a command about one store. Returns the store's record after the command, and the reply.
async fn one(
    router: &RouterClient,
    store: &str,
    command: Ask,
) -> anyhow::Result<(StoreDocument, v1::StoreReply)> {
    let reply = ask(router, store, command).await?;
    let document = documents(&reply)?.pop();
    let document = document.ok_or_else(|| {
        Failure::new(
            ErrorCode::Internal,
            "the router answered without the store's record",
            "report this with its log",
        )
    })?;
    Ok((document, reply))
}

/// Returns a store's record.
///
/// # Errors
/// If there is no such store or the router does not answer.
pub async fn described(router: &RouterClient, store: &str) -> anyhow::Result<StoreDocument> {
    Ok(one(router, store, Ask::Describe(v1::DescribeStore {})).await?.0)
}

fn documents(reply: &v1::StoreReply) -> anyhow::Result<Vec<StoreDocument>> {
    let records = reply.records.iter();
    Ok(records.map(|record| StoreDocument::decode(record)).collect::<Result<_, _>>()?)
}
