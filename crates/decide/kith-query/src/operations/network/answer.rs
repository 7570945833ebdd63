//! The answer of `network`: as a message, and as it is printed.

use super::{NetworkQuery, NetworkReturn, checksum::checksum};
use crate::{
    GraphAnswer,
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        ids,
        view::{Block, Cell, Column, PrintedAnswer, WrongAnswer},
    },
};
use kith_operators::{Network, NetworkSizes};
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;
use std::sync::Arc;

/// A member's network: its sizes, and its ids if they were requested.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkAnswer {
    /// The member.
    pub id: u64,
    /// The sizes of the network.
    pub sizes: NetworkSizes,
    /// The ids, unless only the sizes were requested.
    pub network: Option<Arc<Network>>,
}

impl AnswerKind for NetworkAnswer {
    fn to_message(&self) -> Answer {
        let NetworkSizes { first, second, union } = self.sizes;
        let net = self.sizes.network();
        let mut reply = v1::NetworkReply {
            id: self.id,
            degree: first,
            n2: second,
            net,
            fof: union,
            ..Default::default()
        };
        if let Some(network) = &self.network {
            reply.first = network.first().to_vec();
            reply.second = network.second().collect();
            reply.fof_near = network.nearer().collect();
        }
        Answer::Network(reply)
    }

    fn bytes(&self) -> usize {
        let ids = self.sizes.first + self.sizes.second;
        if self.network.is_some() { ids as usize * ID_BYTES } else { 0 }
    }

    fn from_message(message: Answer, ids_wanted: bool) -> Decoded<Self, Answer> {
        let reply = match message {
            Answer::Network(reply) => reply,
            message => return Decoded::Elsewhere(message),
        };
        let sizes = NetworkSizes { first: reply.degree, second: reply.n2, union: reply.fof };
        let network = ids_wanted
            .then(|| Arc::new(Network::from_parts(reply.id, reply.first, &reply.second, &reply.fof_near)));
        Decoded::valid(NetworkAnswer { id: reply.id, sizes, network })
    }
}

impl Presentation for NetworkQuery {
    type View = NetworkView;

    fn view(&self, answer: GraphAnswer) -> Result<NetworkView, WrongAnswer> {
        let NetworkAnswer { id, sizes, network } = match answer {
            GraphAnswer::Network(answer) => answer,
            answer => return Err(WrongAnswer::kind(&answer)),
        };
        let sets = match (network, self.returns) {
            (Some(network), NetworkReturn::Sha) => SetsView::sha(&network),
            (Some(network), _) => {
                SetsView::Ids { first: network.first().to_vec(), second: network.second().collect() }
            }
            (None, NetworkReturn::Sha) => return Err(WrongAnswer("sizes without ids".to_owned())),
            (None, _) => SetsView::None {},
        };
        let NetworkSizes { first: degree, second: n2, union: fof } = sizes;
        Ok(NetworkView { id, degree, n2, net: sizes.network(), fof, sets })
    }
}

/// A member's network: always the sizes, and ids or checksums if they were requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkView {
    /// The member.
    #[serde(serialize_with = "ids::one")]
    pub id: u64,
    /// The size of the first degree.
    pub degree: u64,
    /// The size of the second degree.
    pub n2: u64,
    /// The size of both degrees.
    pub net: u64,
    /// The size of the raw union of the first degree's lists.
    pub fof: u64,
    /// The sets.
    #[serde(flatten)]
    pub sets: SetsView,
}

/// The sets of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "fields are named as in the JSON, which `docs/queries.md` describes")]
pub enum SetsView {
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

impl SetsView {
    fn sha(network: &Network) -> Self {
        SetsView::Sha {
            first_sha: checksum(network.first().iter().copied()),
            n2_sha: checksum(network.second()),
            net_sha: checksum(network.both()),
            fof_sha: checksum(network.union().iter()),
        }
    }
}

impl PrintedAnswer for NetworkView {
    fn text(&self) -> Vec<Block> {
        let sizes = [
            ("first degree", self.degree),
            ("second degree", self.n2),
            ("network", self.net),
            ("raw union", self.fof),
        ];
        let mut columns = vec![Column::left(format!("member {}", self.id)), Column::right("ids")];
        let mut rows = sizes.map(|(name, size)| vec![Cell::text(name), Cell::Count(size)]).to_vec();
        if let SetsView::Sha { first_sha, n2_sha, net_sha, fof_sha } = &self.sets {
            columns.push(Column::left("sha-256"));
            let sums = [first_sha, n2_sha, net_sha, fof_sha];
            rows.iter_mut().zip(sums).for_each(|(row, sum)| row.push(Cell::text(sum)));
        }
        let mut blocks = vec![Block::Table { columns, rows }];
        if let SetsView::Ids { first, second } = &self.sets {
            blocks.push(Block::Ids { title: "first degree", ids: first.clone() });
            blocks.push(Block::Ids { title: "second degree", ids: second.clone() });
        }
        blocks
    }
}
