//! A node's answer to a request, as it goes over each way: whole or in parts, the values of a read from where they were gathered.

use kith_api::convert::{records_in_place, records_to_wire, value_to_wire};
use kith_net::server::framed::{Encoded, End, Piece, Reply};
use kith_ops::Value;
use kith_wire::v1;

/// What a request is answered with.
pub(super) struct Answered {
    pub value: Value,
    /// Everything else.
    pub rest: v1::EvaluateReply,
}

impl Answered {
    /// As one message.
    pub fn into_message(self) -> v1::EvaluateReply {
        v1::EvaluateReply { value: Some(value_to_wire(&self.value)), ..self.rest }
    }

    /// As it goes in frames.
    pub fn into_reply(self) -> Reply {
        self.in_place().map_or_else(|| Reply::Evaluate(self.into_message()), Reply::Encoded)
    }

    /// As one of several messages that go in frames.
    pub fn into_piece(self, is_last: bool) -> Piece {
        let end = End::of_message(is_last);
        match self.in_place() {
            Some(body) => Piece { body, end },
            None => Piece::of(&self.into_message(), end),
        }
    }

    /// As a part of one message that goes in frames.
    pub fn into_part(self, is_last: bool) -> Piece {
        let end = if is_last { End::Reply } else { End::Part };
        let Value::Records(records) = &self.value else { return Piece::of(&self.into_message(), end) };
        match records_in_place(records) {
            Some((head, values)) => {
                let (before, behind) = kith_wire::around_slice(&self.rest, &head, values.len());
                Piece { body: [before, values, behind], end }
            }
            None => {
                let slices = vec![records_to_wire(records)];
                Piece::of(&v1::EvaluateReply { slices, ..self.rest }, end)
            }
        }
    }

    /// Encoded, the values of a read where they were gathered; `None` of what is no read, or does not lie end to end.
    fn in_place(&self) -> Option<Encoded> {
        let Value::Records(records) = &self.value else { return None };
        let (head, values) = records_in_place(records)?;
        let (before, behind) = kith_wire::around_records(&self.rest, &head, values.len());
        Some([before, values, behind])
    }
}
