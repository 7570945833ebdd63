//! `kith database`: a process that keeps the rows of live graphs.

use super::{
    Ending,
    config::ConfigFile,
    own::ProcessEntry,
    process::{ProcessArgs, RoleProcess},
    start_failure,
};
use crate::{
    connect::SecurityFlags,
    failure::{Exit, Failure},
};
use clap::Args;
use kith::database::{DatabaseOptions, DatabaseServer};

/// Run a database process, which keeps the rows of live graphs in files
#[derive(Args, Debug)]
pub struct DatabaseArgs {
    /// Id of the database; live graphs name it as their storage, database:ID [default: the only database in the file,
    /// else 0]
    #[arg(long, value_name = "N")]
    id: Option<u32>,
    #[command(flatten)]
    process: ProcessArgs,
}

impl RoleProcess for DatabaseArgs {
    const GIVES_WAY: bool = true;

    fn process(&self) -> &ProcessArgs {
        &self.process
    }

    fn own(&self, file: &ConfigFile) -> Result<ProcessEntry, Failure> {
        file.database(self.id)
    }

    async fn serve(
        self,
        security: SecurityFlags,
        file: ConfigFile,
        own: ProcessEntry,
    ) -> anyhow::Result<Exit> {
        let process = self.process.over(security, &file, &own)?;
        let ending = Ending::listen(process.end_with_stdin);
        let options = DatabaseOptions {
            database: own.id,
            listen: process.listen,
            http: process.http,
            data: process.data,
            connections: process.connections,
            security: process.security,
        };
        let started = DatabaseServer::start(options, process.metadata, ending.serving());
        let Some(database) = ending.unless(started).await else { return Ok(Exit::Done) };
        let database = database.map_err(start_failure)?;
        ending.wait(database.leave()).await;
        database.ended().await;
        Ok(Exit::Done)
    }
}
