//! The last line of `kith mget --stream` as JSON. It is a contract (`docs/queries.md`).

use super::ProfileReply;
use kith_client::{StreamFailure, StreamFooter};
use kith_operators::RecordCounts;
use serde::Serialize;

/// The summary of a streamed read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamFooterLine {
    pub footer: StreamFooterReply,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReply>,
}

/// The footer of a batch read, and the further members of a stream's footer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamFooterReply {
    pub status: &'static str,
    pub found: u64,
    pub absent: u64,
    pub error: u64,
    pub unanswered: u64,
    pub versions: Vec<u64>,
    /// The failures; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureReply>,
    /// The checksum in hexadecimal; omitted by a fast client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<String>,
    pub total_us: u64,
    pub service_us: u64,
}

/// Keys that failed with the same error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureReply {
    pub class: &'static str,
    pub keys: u64,
    pub partitions: Vec<u32>,
    pub nodes: Vec<u32>,
}

impl StreamFooterLine {
    /// Whether every key is found or absent.
    pub fn is_complete(&self) -> bool {
        self.footer.error == 0 && self.footer.unanswered == 0
    }
}

impl From<StreamFooter> for StreamFooterLine {
    fn from(footer: StreamFooter) -> Self {
        let RecordCounts { found, absent, error, unanswered } = footer.counts;
        let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let failure = |failure: StreamFailure| FailureReply {
            class: failure.code.name(),
            keys: failure.keys,
            partitions: failure.partitions,
            nodes: failure.nodes,
        };
        Self {
            footer: StreamFooterReply {
                status: footer.status.name(),
                found,
                absent,
                error,
                unanswered,
                versions: vec![footer.version],
                failures: footer.failures.into_iter().map(failure).collect(),
                crc32c: footer.crc32c.map(|crc| format!("{crc:08x}")),
                total_us: micros(footer.total),
                service_us: micros(footer.service),
            },
            profile: footer.profile.as_ref().map(ProfileReply::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_client::StreamStatus;
    use kith_types::ErrorCode;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn a_footer_tells_what_there_is_to_tell() {
        let footer = StreamFooter {
            status: StreamStatus::Ok,
            counts: RecordCounts { found: 2, absent: 1, ..RecordCounts::default() },
            failures: vec![],
            version: 7,
            schema: None,
            crc32c: None,
            total: Duration::from_micros(90),
            service: Duration::from_micros(30),
            profile: None,
        };
        let line = StreamFooterLine::from(footer.clone());
        assert!(line.is_complete());
        let expected = json!({"footer": {"status": "OK", "found": 2, "absent": 1, "error": 0, "unanswered": 0,
            "versions": [7], "total_us": 90, "service_us": 30}});
        assert_eq!(serde_json::to_value(line).unwrap(), expected);
        let failure = StreamFailure {
            partitions: vec![3, 9],
            keys: 1,
            code: ErrorCode::DeadlineExceeded,
            nodes: vec![5],
        };
        let cut = StreamFooter {
            status: StreamStatus::Partial,
            counts: RecordCounts { found: 2, unanswered: 1, ..RecordCounts::default() },
            failures: vec![failure],
            crc32c: Some(0x1f),
            ..footer
        };
        let line = StreamFooterLine::from(cut);
        assert!(!line.is_complete());
        let value = serde_json::to_value(line).unwrap();
        let failures = json!([{"class": "deadline_exceeded", "keys": 1, "partitions": [3, 9], "nodes": [5]}]);
        assert_eq!(
            (&value["footer"]["failures"], &value["footer"]["crc32c"]),
            (&failures, &json!("0000001f"))
        );
    }
}
