//! Points of logs in messages.

use kith_types::LogPoint;
use kith_wire::v1;

/// Encodes a point of a log.
pub(super) fn point_to_wire(point: LogPoint) -> v1::LogPlace {
    v1::LogPlace { term: point.term.0, position: point.position.0 }
}

/// Decodes a point of a log.
pub(super) fn point_from_wire(point: v1::LogPlace) -> LogPoint {
    LogPoint::new(point.term, point.position)
}
