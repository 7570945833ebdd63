//! An answer, or a part of one.

use super::Status;
use crate::{
    error::GremlinError,
    value::{Map, Value},
};
use uuid::Uuid;

/// The name of the status attribute that has the code of an error in Kith's own terms.
pub const ERROR_CODE: &str = "kith.code";

/// A longer message of an error is cut. It may quote what the request has.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// A message to a driver. A request is answered by any number of messages with [`Status::PartialContent`] and one with another
/// status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The id of the request; `None` if it could not be read.
    pub id: Option<Uuid>,
    /// How the request ended, or that it goes on.
    pub status: Status,
    /// The error message; empty if there is none.
    pub message: String,
    /// Further facts about the status, such as a ticket.
    pub attributes: Map,
    /// Results: traversers if the request was a traversal, plain values if it was a text. `None` if there can be none.
    pub data: Option<Vec<Value>>,
    /// Further facts about the results.
    pub meta: Map,
}

impl Response {
    /// The last results.
    pub fn success(id: Uuid, data: Vec<Value>) -> Self {
        Self::new(Some(id), Status::Success, Some(data))
    }

    /// Results which others will follow.
    pub fn partial(id: Uuid, data: Vec<Value>) -> Self {
        Self::new(Some(id), Status::PartialContent, Some(data))
    }

    /// The end of a request that has no results.
    pub fn no_content(id: Uuid) -> Self {
        Self::new(Some(id), Status::NoContent, None)
    }

    /// The demand for credentials.
    pub fn authenticate(id: Uuid) -> Self {
        Self::new(Some(id), Status::Authenticate, None)
    }

    /// The end of a request that failed. The attribute [`ERROR_CODE`] has the code of the error.
    pub fn failure(id: Option<Uuid>, error: &GremlinError) -> Self {
        let mut response = Self::new(id, Status::of_error(error.code), None);
        response.message = error.message.chars().take(MESSAGE_CHARS_MAX).collect();
        response.attributes.insert(ERROR_CODE.into(), error.code.name().into());
        response
    }

    fn new(id: Option<Uuid>, status: Status, data: Option<Vec<Value>>) -> Self {
        Self { id, status, message: String::new(), attributes: Map::new(), data, meta: Map::new() }
    }
}
