//! Errors on the wire: a gRPC status whose details carry Kith's stable code, in the
//! standard envelope (`google.rpc.Status`), so that any gRPC tool can show them.

use crate::v1::ErrorDetail;
use bytes::Bytes;
use kith_types::ErrorCode;
use prost::Message;
use std::borrow::Cow;
use tonic::{Code, Status};

/// Returns a status with a stable code, a message that says what happened and why, and a help text that says what to
/// do. Its gRPC code is that of the class of `code`.
pub fn status(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Status {
    with_detail(code, message, ErrorDetail { help: help.into(), ..ErrorDetail::default() })
}

/// The error that ends a stream if its deadline passes before the whole stream has arrived and been read. Whichever end
/// notices first reports it.
pub fn too_slow() -> Status {
    let message = "the deadline passed before the whole stream had arrived and been read";
    let help = "read faster, ask for less, or give the query more time";
    status(ErrorCode::DeadlineExceeded, message, help)
}

/// The type URL of the details.
const DETAIL_TYPE: &str = "type.googleapis.com/kith.v1.ErrorDetail";

/// The fields of `google.rpc.Status` that Kith uses.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<RpcAny>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct RpcAny {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// The longest text of an error. Errors quote their input, and gRPC carries them in headers, which gRPC clients limit
/// to 8 KiB for all details together, in base64 and percent-encoding.
const TEXT_BYTES_MAX: usize = 1_024;

/// The most partitions that an error names.
const PARTITIONS_MAX: usize = 512;

/// Replaces the text that was cut off.
const ELLIPSIS: &str = "…";

/// Shortens `text` to [`TEXT_BYTES_MAX`], at a character boundary.
pub(crate) fn bounded<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let room = TEXT_BYTES_MAX - ELLIPSIS.len();
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{ELLIPSIS}", &text[..end]).into()
}

/// Returns a status with this code and these details; the `code` field of `detail` is overwritten. Every error that
/// quotes its input is made here, so that its texts are cut.
pub fn with_detail(code: ErrorCode, message: impl Into<String>, mut detail: ErrorDetail) -> Status {
    let message = bounded(message.into()).into_owned();
    code.name().clone_into(&mut detail.code);
    detail.help = bounded(detail.help).into_owned();
    detail.partitions.truncate(PARTITIONS_MAX);
    let details = vec![RpcAny { type_url: DETAIL_TYPE.to_owned(), value: detail.encode_to_vec() }];
    let grpc = code.class().grpc();
    let envelope = RpcStatus { code: grpc, message: message.clone(), details };
    Status::with_details(Code::from_i32(grpc), message, envelope.encode_to_vec().into())
}

/// Returns the envelope of any status: the one that it carries, or a new one without details.
pub(crate) fn envelope_of(status: &Status) -> Bytes {
    if !status.details().is_empty() && RpcStatus::decode(status.details()).is_ok() {
        return Bytes::copy_from_slice(status.details());
    }
    let (code, message) = (status.code() as i32, bounded(status.message()).into_owned());
    RpcStatus { code, message, details: Vec::new() }.encode_to_vec().into()
}

/// Decodes the status in an envelope. Malformed bytes become an internal error that says so.
pub(crate) fn status_of_envelope(bytes: &Bytes) -> Status {
    match RpcStatus::decode(bytes.clone()) {
        Ok(envelope) if envelope.details.is_empty() => {
            Status::new(Code::from_i32(envelope.code), envelope.message)
        }
        Ok(envelope) => Status::with_details(Code::from_i32(envelope.code), envelope.message, bytes.clone()),
        Err(error) => Status::internal(format!("the error cannot be decoded: {error}")),
    }
}

/// Returns the code of a status. A status that Kith did not write (it came from a proxy, or from a lost connection)
/// gets its code from its gRPC code.
pub fn code_of(status: &Status) -> ErrorCode {
    ErrorCode::of_name(&detail_of(status).code)
}

/// Whether a Kith process wrote this status as its answer. A status from elsewhere (a proxy, a lost connection, a timer
/// of gRPC) does not say whether the request was carried out.
pub fn is_answer(status: &Status) -> bool {
    own_detail(status).is_some()
}

/// Returns the details of a status, with the code that [`code_of`] returns.
pub fn detail_of(status: &Status) -> ErrorDetail {
    if let Some(detail) = own_detail(status) {
        return detail;
    }
    let code = match status.code() {
        Code::DeadlineExceeded => ErrorCode::DeadlineExceeded,
        Code::Cancelled => ErrorCode::Cancelled,
        Code::Unavailable => ErrorCode::Unavailable,
        Code::Unimplemented => ErrorCode::UnsupportedOperation,
        Code::ResourceExhausted => ErrorCode::Overloaded,
        _ => ErrorCode::Internal,
    };
    ErrorDetail { code: code.name().to_owned(), ..ErrorDetail::default() }
}

fn own_detail(status: &Status) -> Option<ErrorDetail> {
    if status.details().is_empty() {
        return None;
    }
    let envelope = RpcStatus::decode(status.details()).ok()?;
    let any = envelope.details.into_iter().find(|any| any.type_url == DETAIL_TYPE)?;
    ErrorDetail::decode(any.value.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_come_back_from_the_standard_envelope() {
        let sent = status(ErrorCode::MemberNotFound, "member 1 is not in the graph", "check the id");
        let detail = detail_of(&sent);
        assert_eq!((detail.code.as_str(), detail.help.as_str()), ("member_not_found", "check the id"));
        let envelope = RpcStatus::decode(sent.details()).unwrap();
        assert_eq!(
            (envelope.code, envelope.message.as_str()),
            (Code::NotFound as i32, "member 1 is not in the graph")
        );
    }

    #[test]
    fn an_error_quotes_no_more_than_fits_into_the_headers_of_any_client() {
        let name = "ü\u{1f980}".repeat(1 << 20);
        let detail =
            ErrorDetail { help: name.clone(), partitions: (0..1 << 16).collect(), ..Default::default() };
        let sent = with_detail(ErrorCode::UnknownGraph, format!("no graph {name}"), detail);
        assert!(sent.message().starts_with("no graph ü") && sent.message().ends_with('…'), "{sent}");
        let detail = detail_of(&sent);
        assert!(detail.help.ends_with("ü…") || detail.help.ends_with("\u{1f980}…"), "{}", detail.help);
        assert_eq!(detail.partitions, (0..512).collect::<Vec<_>>());
        let response = sent.into_http::<()>();
        let bytes: usize =
            response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        assert!(bytes < 8 << 10, "{bytes}");
        let foreign = Status::not_found("x".repeat(20 << 20));
        assert!(envelope_of(&foreign).len() < 2 << 10);
        let exact = "x".repeat(TEXT_BYTES_MAX);
        assert_eq!(bounded(&*exact), exact);
    }

    #[test]
    fn a_status_from_elsewhere_gets_a_code_from_its_grpc_code() {
        assert_eq!(code_of(&Status::unavailable("gone")), ErrorCode::Unavailable);
        let foreign = Status::with_details(Code::Internal, "odd", b"not an envelope".to_vec().into());
        assert_eq!(code_of(&foreign), ErrorCode::Internal);
    }
}
