//! Computes the correct answers from the lists in the plainest way: without fan-outs, kernels or operators.

use super::population::Population;
use kith_query::{
    CommonAnswer, CommonQuery, ConnectionsQuery, GraphAnswer, NetworkQuery, NetworkReturn, Operation, Want,
};
use kith_schema::EdgeSelector;
use kith_types::Direction;
use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

/// A hash that is equal for all correct answers to one query. For a path it covers only the length, because any shortest
/// path is correct.
pub fn fingerprint(answer: &GraphAnswer) -> u64 {
    let mut hasher = DefaultHasher::new();
    match answer {
        GraphAnswer::Ids(ids) => ids.hash(&mut hasher),
        GraphAnswer::Network(answer) => {
            let sizes = answer.sizes;
            (sizes.first, sizes.second, sizes.union).hash(&mut hasher);
            if let Some(network) = &answer.network {
                network.first().hash(&mut hasher);
                network.second().for_each(|id| id.hash(&mut hasher));
            }
        }
        GraphAnswer::Degrees(degrees) => degrees.hash(&mut hasher),
        GraphAnswer::Edges(edges) => edges.ids.hash(&mut hasher),
        GraphAnswer::Object(object) => object.iter().for_each(|object| object.version.hash(&mut hasher)),
        GraphAnswer::Objects(objects) => {
            objects.iter().flatten().for_each(|object| object.version.hash(&mut hasher));
        }
        GraphAnswer::Associations(answer) => {
            answer.out.iter().for_each(|association| (association.id2, association.time).hash(&mut hasher));
        }
        GraphAnswer::Path(path) => path.members.len().hash(&mut hasher),
        // Any other answer counts as a whole.
        answer => format!("{answer:?}").hash(&mut hasher),
    }
    hasher.finish()
}

/// The fingerprint of the correct answer, for the queries of a mix; `None` for others.
///
/// # Errors
/// If a list cannot be read.
pub fn expected(population: &Population, operation: &Operation) -> anyhow::Result<Option<u64>> {
    let edge = population.edge();
    let list = |id| anyhow::Ok(population.list(edge, id)?.unwrap_or_default());
    Ok(match operation {
        Operation::Connections(ConnectionsQuery { id }) => Some(fingerprint(&GraphAnswer::Ids(list(*id)?))),
        Operation::Network(NetworkQuery { id, returns: NetworkReturn::Size }) => {
            let first = list(*id)?;
            let mut union = BTreeSet::new();
            for friend in &first {
                union.extend(list(*friend)?);
            }
            let is_second = |other: &&u64| **other != *id && first.binary_search(other).is_err();
            let second = union.iter().filter(is_second).count() as u64;
            let mut hasher = DefaultHasher::new();
            (first.len() as u64, second, union.len() as u64).hash(&mut hasher);
            Some(hasher.finish())
        }
        Operation::Common(CommonQuery { id, to, kind, returns: Want::Exists, .. }) => {
            let edge = kind.as_ref().map_or_else(|| edge.clone(), |kind| entities(kind));
            let own = kind.is_none();
            let theirs = population.list(&edge, *to)?.unwrap_or_default();
            let mine = population.list(&edge, *id)?.unwrap_or_default();
            let counts = |other: &&u64| !own || (**other != *id && **other != *to);
            let exists = mine.iter().filter(counts).any(|other| theirs.binary_search(other).is_ok());
            Some(fingerprint(&GraphAnswer::Common(CommonAnswer::Exists(exists))))
        }
        _ => None,
    })
}

fn entities(kind: &str) -> EdgeSelector {
    EdgeSelector { kind: kind.to_owned(), direction: Direction::Out, filter: None }
}
