//! Answers as JSON. Field names and forms are a contract, tested by golden files (`docs/queries.md`).

#![allow(missing_docs, reason = "fields are named as in the JSON, which `docs/queries.md` describes")]

mod batch;
mod checksum;
mod compute;
mod edges;
pub mod graphs;
mod live;
mod profile;
pub mod stores;
mod stream;

pub use batch::{BatchReply, Footer, FooterLine, Json, KeyReply, Values, key_name, reason};
pub use compute::{AggregateReply, ComputeReply, Computed, ComputedReply, CountReply};
pub use edges::Edge;
pub use live::{Association, Associations, Object};
pub use profile::{ExplainReply, InputsReply, ProfileReply, RequestReply, RoundReply};
pub use stream::StreamFooterLine;

use crate::{failure::Failure, ids};
use checksum::checksum;
use kith_client::Answered;
use kith_operators::Network;
use kith_query::{
    CommonAnswer, GraphAnswer, NetworkAnswer,
    line::{GraphLine, Shape},
};
use kith_types::ErrorCode;
use serde::Serialize;

/// One answer, as a line of `kith run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The result.
    #[serde(flatten)]
    pub reply: Reply,
    /// `Some(false)` if partitions are missing; omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// The partitions for which no node answered; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_partitions: Vec<u32>,
    /// The plan and its timings, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReply>,
}

/// The result of a query of a graph, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    Ids {
        #[serde(serialize_with = "ids::many")]
        ids: Vec<u64>,
    },
    Entities {
        #[serde(serialize_with = "ids::many")]
        entities: Vec<u64>,
    },
    Network(NetworkReply),
    Degrees {
        degrees: Vec<Option<u64>>,
    },
    Edges {
        edges: Vec<Edge>,
        after: Option<String>,
    },
    Object {
        object: Option<Object>,
    },
    Objects {
        objects: Vec<Option<Object>>,
    },
    AssociationCount {
        count: Option<u64>,
    },
    Associations(Associations),
    Distances {
        distances: Vec<Option<u8>>,
    },
    Path {
        length: Option<usize>,
        #[serde(serialize_with = "ids::many")]
        path: Vec<u64>,
    },
    Size {
        size: u64,
    },
    Exists {
        exists: bool,
    },
    Suggestions {
        #[serde(serialize_with = "ids::counted")]
        suggestions: Vec<(u64, u32)>,
    },
}

/// A member's network: always the sizes, and ids or checksums if they were requested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkReply {
    #[serde(serialize_with = "ids::one")]
    pub id: u64,
    pub degree: u64,
    pub n2: u64,
    pub net: u64,
    pub fof: u64,
    #[serde(flatten)]
    pub sets: NetworkSets,
}

/// The sets of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NetworkSets {
    None {},
    Ids {
        #[serde(serialize_with = "ids::many")]
        first: Vec<u64>,
        #[serde(serialize_with = "ids::many")]
        second: Vec<u64>,
    },
    Sha {
        first_sha: String,
        n2_sha: String,
        net_sha: String,
        fof_sha: String,
    },
}

impl Answer {
    /// Returns the answer to `question` in the form in which it is printed.
    ///
    /// # Errors
    /// Returns `internal` if the answer is of another kind than the question.
    pub fn new(question: &GraphLine, answered: Answered) -> Result<Self, Failure> {
        Ok(Self {
            reply: Reply::new(question, answered.answer)?,
            complete: (!answered.complete).then_some(false),
            missing_partitions: answered.missing_partitions,
            profile: answered.profile.as_ref().map(ProfileReply::from),
        })
    }

    /// Whether the answer covers all partitions.
    pub fn is_complete(&self) -> bool {
        self.complete.is_none()
    }
}

impl Reply {
    fn new(question: &GraphLine, answer: GraphAnswer) -> Result<Self, Failure> {
        let shape = question.operation.shape();
        Ok(match (shape, answer) {
            (Shape::Entities, GraphAnswer::Ids(ids)) => Reply::Entities { entities: ids },
            (Shape::Ids, GraphAnswer::Ids(ids) | GraphAnswer::Common(CommonAnswer::Ids(ids))) => {
                Reply::Ids { ids }
            }
            (Shape::Network | Shape::NetworkSha, GraphAnswer::Network(answer)) => {
                Reply::Network(NetworkReply::new(&answer, shape == Shape::NetworkSha)?)
            }
            (Shape::Edges, GraphAnswer::Edges(answer)) => edges::reply(answer),
            (Shape::Plain, GraphAnswer::Object(object)) => {
                Reply::Object { object: object.map(Object::of).transpose()? }
            }
            (Shape::Plain, GraphAnswer::Objects(objects)) => Reply::Objects {
                objects: objects
                    .into_iter()
                    .map(|object| object.map(Object::of).transpose())
                    .collect::<Result<_, _>>()?,
            },
            (Shape::Plain, GraphAnswer::AssociationCount(count)) => Reply::AssociationCount { count },
            (Shape::Plain | Shape::Range | Shape::TimeRange, GraphAnswer::Associations(answer)) => {
                Reply::Associations(Associations::of(answer)?)
            }
            (Shape::Plain, GraphAnswer::Degrees(degrees)) => Reply::Degrees { degrees },
            (Shape::Plain, GraphAnswer::Distances(distances)) => Reply::Distances { distances },
            (Shape::Plain, GraphAnswer::Path(path)) => {
                Reply::Path { length: path.members.len().checked_sub(1), path: path.members }
            }
            (Shape::Plain, GraphAnswer::Common(CommonAnswer::Size(size))) => Reply::Size { size },
            (Shape::Plain, GraphAnswer::Common(CommonAnswer::Exists(exists))) => Reply::Exists { exists },
            (Shape::Plain, GraphAnswer::Suggestions(suggestions)) => Reply::Suggestions { suggestions },
            (_, answer) => return Err(wrong_kind(&format!("{answer:.60?}"))),
        })
    }
}

impl NetworkReply {
    fn new(answer: &NetworkAnswer, sha: bool) -> Result<Self, Failure> {
        let sizes = answer.sizes;
        let sets = match &answer.network {
            Some(network) if sha => NetworkSets::sha(network),
            Some(network) => {
                NetworkSets::Ids { first: network.first().to_vec(), second: network.second().collect() }
            }
            None if sha => return Err(wrong_kind("sizes without ids")),
            None => NetworkSets::None {},
        };
        Ok(Self {
            id: answer.id,
            degree: sizes.first,
            n2: sizes.second,
            net: sizes.network(),
            fof: sizes.union,
            sets,
        })
    }
}

impl NetworkSets {
    fn sha(network: &Network) -> Self {
        NetworkSets::Sha {
            first_sha: checksum(network.first().iter().copied()),
            n2_sha: checksum(network.second()),
            net_sha: checksum(network.both()),
            fof_sha: checksum(network.union().iter()),
        }
    }
}

fn wrong_kind(got: &str) -> Failure {
    let message = format!("the answer does not fit the question: {got}");
    Failure::new(ErrorCode::Internal, message, "this is a defect of Kith: please report it with the question")
}
