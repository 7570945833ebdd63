//! A change of the types of a live graph, as it is asked for and reported.

use kith_database::Storage;
use kith_live::TypeChange;
use kith_topology::versions::Trust;

/// A request to create a live graph or to change its types.
#[derive(Clone, Debug)]
pub(super) struct SchemaApply {
    /// The name of the graph.
    pub graph: String,
    /// The types of the graph (`docs/formats/graph-types.md`).
    pub text: String,
    /// The location of the graph's rows, which has been checked. If there is none, the location of an existing graph stays,
    /// and a new graph gets the first database process of the cluster.
    pub storage: Option<Storage>,
    /// Whether to report the changes without making them.
    pub dry_run: bool,
    /// The subject that sent the request.
    pub who: String,
    /// The trust in the identity of the subject.
    pub standing: Trust,
}

/// The result of a [`SchemaApply`], or with `dry_run` the result that it would have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchemaResult {
    /// Whether the graph is new.
    pub is_new: bool,
    /// The changes to the types.
    pub changes: Vec<TypeChange>,
    /// The revision of the types: 1 for a new graph, and one more with each change.
    pub revision: u64,
    /// The location of the graph's rows.
    pub storage: String,
}
