//! Corrects the code of gRPC requests whose message cannot be decoded. tonic answers them with an internal error, but the
//! caller caused it.

use axum::response::Response;
use kith_types::ErrorCode;
use tonic::{Code, Status, service::Routes};

/// The start of tonic's message for such a request.
const DECODE_FAILED: &str = "failed to decode Protobuf message";

/// Wraps routes so that requests that cannot be decoded are answered with `bad_request`.
pub(crate) fn corrected(routes: Routes) -> Routes {
    Routes::from(routes.into_axum_router().layer(axum::middleware::map_response(tell)))
}

async fn tell(response: Response) -> Response {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::Internal && status.message().starts_with(DECODE_FAILED) => {
            let message = format!("the request's body cannot be read: {}", status.message());
            let help = "use a client of this release, and nest the query less deeply";
            kith_wire::status(ErrorCode::BadRequest, message, help).into_http()
        }
        _ => response,
    }
}
