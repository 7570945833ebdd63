//! The values of some fields of operations: which part of an answer is returned, and how it is computed.

use crate::{CommonPlan, Want};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkReturn {
    /// Sizes and the ids of both degrees
    #[default]
    Ids,
    /// Sizes only
    Size,
    /// Sizes and a checksum of each set
    Sha,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommonReturn {
    /// The ids
    #[default]
    Ids,
    /// Their number
    Size,
    /// Whether there is one
    Exists,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// Choose by the lengths of the lists
    #[default]
    Auto,
    /// Fetch both lists and intersect them at the caller
    Fetch,
    /// Ask the inverted index of every partition
    Push,
}

impl CommonReturn {
    pub(crate) fn of(want: Want) -> Self {
        match want {
            Want::Ids => CommonReturn::Ids,
            Want::Size => CommonReturn::Size,
            Want::Exists => CommonReturn::Exists,
        }
    }

    pub(crate) fn want(self) -> Want {
        match self {
            CommonReturn::Ids => Want::Ids,
            CommonReturn::Size => Want::Size,
            CommonReturn::Exists => Want::Exists,
        }
    }
}

impl Plan {
    pub(crate) fn of(plan: CommonPlan) -> Self {
        match plan {
            CommonPlan::Auto => Plan::Auto,
            CommonPlan::Fetch => Plan::Fetch,
            CommonPlan::Push => Plan::Push,
        }
    }

    pub(crate) fn is_auto(&self) -> bool {
        *self == Plan::Auto
    }

    pub(crate) fn inner(self) -> CommonPlan {
        match self {
            Plan::Auto => CommonPlan::Auto,
            Plan::Fetch => CommonPlan::Fetch,
            Plan::Push => CommonPlan::Push,
        }
    }
}
