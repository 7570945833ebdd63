//! Messages of the WebSocket protocol of Gremlin Server 3.8: requests to what they ask, and answers to bytes.
//!
//! A binary frame begins with the length of a media type (one byte) and that type, which says how the rest is coded. A text
//! frame is GraphSON 3. An answer is coded as its request was, without a media type.
//!
//! ```
//! use kith_gremlin::{Room, message::{self, Frame, Operation, Response}};
//!
//! let text = r#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"",
//!     "args":{"gremlin":"g.V(x).out()","bindings":{"x":1},"aliases":{"g":"people"}}}"#;
//! let (serializer, request) = message::decode(Frame::Text(text), &mut Room::unbounded()).expect("a request");
//! assert!(matches!(&request.operation, Operation::Eval { gremlin, .. } if &**gremlin == "g.V(x).out()"));
//!
//! let answer = Response::success(request.id, vec!["marko".into()]);
//! let bytes = answer.encode(serializer).expect("short enough");
//! assert!(String::from_utf8(bytes).expect("GraphSON is text").contains("marko"));
//! ```

mod arguments;
mod authentication;
mod binary;
pub mod http;
mod json;
mod request;
mod response;
mod status;

pub use authentication::Credentials;
pub use request::{Operation, Options, Request};
pub use response::{ERROR_CODE, Response};
pub use status::Status;

use crate::{
    error::{GremlinError, Result},
    graphson::Version,
    room::Room,
    value::Map,
};
use std::sync::Arc;
use uuid::Uuid;

impl Response {
    /// The payload of the frame: for GraphSON a text.
    ///
    /// # Errors
    ///
    /// A value nests deeper or has more parts than the coding allows. The request can then be answered with
    /// [`Status::Serialization`].
    pub fn encode(&self, serializer: Serializer) -> Result<Vec<u8>> {
        match serializer {
            Serializer::GraphBinary | Serializer::GraphBinaryText => binary::encode(self, serializer),
            Serializer::GraphSon => json::encode(self, Version::Three),
            Serializer::GraphSon2 => json::encode(self, Version::Two),
        }
    }
}

/// How a request is coded, and its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serializer {
    /// GraphBinary 1.0.
    GraphBinary,
    /// GraphBinary 1.0, but each result is a string, its text form. gremlin-console asks for this.
    GraphBinaryText,
    /// GraphSON 3 with types.
    GraphSon,
    /// GraphSON 2 with types.
    GraphSon2,
}

impl Serializer {
    /// The version of GraphSON that this is; `None` for GraphBinary.
    fn version(self) -> Option<Version> {
        match self {
            Self::GraphBinary | Self::GraphBinaryText => None,
            Self::GraphSon => Some(Version::Three),
            Self::GraphSon2 => Some(Version::Two),
        }
    }
}

/// Media types and what they mean.
const MEDIA_TYPES: [(&str, Serializer); 5] = [
    ("application/vnd.graphbinary-v1.0", Serializer::GraphBinary),
    ("application/vnd.graphbinary-v1.0-stringd", Serializer::GraphBinaryText),
    ("application/vnd.gremlin-v3.0+json", Serializer::GraphSon),
    ("application/vnd.gremlin-v2.0+json", Serializer::GraphSon2),
    ("application/json", Serializer::GraphSon),
];

/// The payload of a frame of a WebSocket. Answers travel in frames of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of the kinds of frames")]
pub enum Frame<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

/// A request that cannot be served, whether it cannot be decoded or asks for what Kith does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRequest {
    /// The id of the request, if it could be found.
    pub id: Option<Uuid>,
    /// How the answer is coded.
    pub serializer: Serializer,
    /// Why it is rejected.
    pub error: GremlinError,
}

impl RejectedRequest {
    /// The answer to the request.
    pub fn response(&self) -> Response {
        Response::failure(self.id, &self.error)
    }
}

/// The parts of a request in either coding, before its arguments are read.
struct Parts {
    operation: Arc<str>,
    processor: Arc<str>,
    arguments: Map,
}

/// A request as far as it could be decoded: its id, and its parts or why there are none.
type Decoded = (Option<Uuid>, Result<Parts>);

/// The request of a frame, and how it is coded. It takes no more memory than there is room.
///
/// # Errors
///
/// The frame is no request, or asks for what Kith does not support, such as a session. The error has the id of the request,
/// so that it can be answered, unless the frame is damaged where the id is.
pub fn decode(frame: Frame<'_>, room: &mut Room) -> Result<(Serializer, Request), RejectedRequest> {
    let (serializer, (id, parts)) = match frame {
        Frame::Text(text) => (Serializer::GraphSon, json::decode(text, room)),
        Frame::Binary(bytes) => decode_binary(bytes, room)?,
    };
    let rejected = |error| RejectedRequest { id, serializer, error };
    let parts = parts.map_err(rejected)?;
    let id =
        id.ok_or_else(|| rejected(GremlinError::bad("the request has no \"requestId\", which is a UUID")))?;
    let request = Request::new(id, parts).map_err(rejected)?;
    Ok((serializer, request))
}

fn decode_binary(bytes: &[u8], room: &mut Room) -> Result<(Serializer, Decoded), RejectedRequest> {
    let rejected =
        |serializer, id, error| RejectedRequest { id, serializer, error: GremlinError::bad(error) };
    let media_type =
        bytes.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
    let Some((media_type, body)) = media_type else {
        let error = "the frame does not begin with the length of a media type and a media type".to_owned();
        return Err(rejected(Serializer::GraphBinary, None, error));
    };
    let media_type = String::from_utf8_lossy(media_type);
    let Some((_, serializer)) = MEDIA_TYPES.iter().find(|(name, _)| *name == media_type) else {
        let names = MEDIA_TYPES.map(|(name, _)| name).join(", ");
        let error = format!("the media type {media_type:?} is not supported; use one of {names}");
        // Other versions of GraphSON have the same frame around their values, and read the collections of GraphSON 2.
        let is_json = media_type.contains("json");
        let serializer = if is_json { Serializer::GraphSon2 } else { Serializer::GraphBinary };
        let id = if is_json { json::find_id(&String::from_utf8_lossy(body)) } else { None };
        return Err(rejected(serializer, id, error));
    };
    let start = bytes.len() - body.len();
    let decoded = match serializer {
        Serializer::GraphBinary | Serializer::GraphBinaryText => binary::decode(bytes, start, room),
        Serializer::GraphSon | Serializer::GraphSon2 => match std::str::from_utf8(body) {
            Ok(text) => json::decode(text, room),
            Err(_) => {
                let error = GremlinError::bad("the request is not UTF-8, as JSON must be");
                (json::find_id(&String::from_utf8_lossy(body)), Err(error))
            }
        },
    };
    Ok((*serializer, decoded))
}
