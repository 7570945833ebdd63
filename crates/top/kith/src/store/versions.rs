//! The versions of a store: which are kept, and which of them is served.

use super::one;
use crate::{
    connect::{self, TargetFlags},
    names::store_name,
    output::{self, Format},
    reply::stores::{self as reply, StoreReply, SwapReply},
    table::stores,
};
use clap::Subcommand;
use kith_client::RouterClient;
use kith_wire::{
    documents::StoreDocument,
    v1::{self, store_request::Command as Ask},
};

#[derive(Debug, Subcommand)]
pub enum VersionsCommand {
    /// List the versions of a store
    Versions {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
    },
    /// Serve another version; the current one is retained
    Swap {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
        /// The version to serve
        version: u64,
        /// Serve it even if it is blocked
        #[arg(long)]
        force: bool,
    },
    /// Serve an older version; the current one is blocked
    Rollback {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
        /// The version to serve [default: the newest retained one that is older]
        #[arg(long, value_name = "VERSION")]
        to: Option<u64>,
        /// Serve it even if it is blocked
        #[arg(long, requires = "to")]
        force: bool,
    },
    /// Protect a version from removal, or release it
    Hold {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
        /// The version
        version: u64,
        /// Release the version, so that it may be removed
        #[arg(long)]
        release: bool,
    },
    /// Refuse new pushes and loads; one under way finishes. Swaps and rollbacks still work
    Freeze {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
    },
    /// Accept pushes and loads of a frozen store again
    Thaw {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
    },
    /// Block a retained version, so that only --force serves it
    Block {
        /// The store
        #[arg(value_parser = store_name)]
        store: String,
        /// The version
        version: u64,
        /// Unblock the version
        #[arg(long)]
        undo: bool,
    },
}

/// Runs a command.
///
/// # Errors
/// If the cluster does not answer, there is no such store or version, or the command is refused.
pub async fn run(target: &TargetFlags, format: Format, command: VersionsCommand) -> anyhow::Result<()> {
    let router = connect::router(target).await?;
    match command {
        VersionsCommand::Versions { store } => versions(format, &super::described(&router, &store).await?),
        VersionsCommand::Swap { store, version, force } => {
            let swap = Ask::Swap(v1::SwapStore { to: version, force });
            swapped(&router, format, &store, swap).await
        }
        VersionsCommand::Rollback { store, to, force } => {
            let rollback = Ask::Rollback(v1::RollbackStore { to, force });
            swapped(&router, format, &store, rollback).await
        }
        VersionsCommand::Hold { store, version, release } => {
            let hold = Ask::Hold(v1::HoldStore { version, release });
            changed(&router, format, &store, hold).await
        }
        VersionsCommand::Freeze { store } => frozen(&router, format, &store, true).await,
        VersionsCommand::Thaw { store } => frozen(&router, format, &store, false).await,
        VersionsCommand::Block { store, version, undo } => {
            let block = Ask::Block(v1::BlockStore { version, unblock: undo });
            changed(&router, format, &store, block).await
        }
    }
}

/// Swaps the version, and prints what was done and how to undo it.
async fn swapped(router: &RouterClient, format: Format, store: &str, command: Ask) -> anyhow::Result<()> {
    let is_rollback = matches!(command, Ask::Rollback(_));
    let (document, reply) = one(router, store, command).await?;
    let reply = SwapReply::new(&document, reply, is_rollback);
    output::print(format, &reply, stores::swapped)
}

async fn changed(router: &RouterClient, format: Format, store: &str, command: Ask) -> anyhow::Result<()> {
    let (document, _) = one(router, store, command).await?;
    versions(format, &document)
}

fn versions(format: Format, document: &StoreDocument) -> anyhow::Result<()> {
    output::print(format, &reply::versions(document), |versions| {
        stores::versions(versions, document.frozen.as_ref())
    })
}

async fn frozen(router: &RouterClient, format: Format, store: &str, freezes: bool) -> anyhow::Result<()> {
    let freeze = Ask::Freeze(v1::FreezeStore { thaw: !freezes });
    let (document, _) = one(router, store, freeze).await?;
    output::print(format, &StoreReply::from(document), stores::describe)
}
