//! The functions of the endpoint that the dialogue needs to answer commands that read no stored value.

use super::clients::Client;
use kith_query::{QueryError, StoreShape};

/// Answers questions about the server, its stores and its connections, and counts commands.
pub(super) trait Host {
    /// The types of a store's keys and values.
    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError>;
    /// The sections of `INFO`: their names, and their lines of `field:value`.
    fn sections(&self) -> Vec<(&'static str, String)>;
    /// The settings that `CONFIG GET` can return, by name.
    fn settings(&self) -> Vec<(&'static str, String)>;
    /// `CLIENT LIST`: one line for each connection, or for each of those with these ids.
    fn clients(&self, ids: Option<&[u64]>) -> String;
    /// `CLIENT INFO`: the line of one connection.
    fn client(&self, client: &Client) -> String;
    /// Counts a command by its index in [`super::commands::ALL`]; `None` counts an unknown command.
    fn note(&self, command: Option<usize>);
    /// Counts a token that identifies nobody. `is_first`: the connection has presented none before it.
    fn note_unproven(&self, client: &Client, is_first: bool);
}
