//! A node's answer to a request, encoded for each transport: as one message or in parts. The values of a read are sent from
//! where they were gathered.

use kith_net::server::framed::{EncodedMessage, End, FrameReply, Piece};
use kith_operators::Value;
use kith_query::convert::{records_in_place, records_to_wire, value_to_wire};
use kith_wire::v1;

/// The answer to a request.
pub(crate) struct EncodableAnswer {
    pub value: Value,
    /// All fields of the reply except the value.
    pub rest: v1::EvaluateReply,
}

impl EncodableAnswer {
    /// Returns the answer as one message.
    pub fn into_message(self) -> v1::EvaluateReply {
        v1::EvaluateReply { value: Some(value_to_wire(&self.value)), ..self.rest }
    }

    /// Returns the answer as a reply in frames.
    pub fn into_reply(self) -> FrameReply {
        self.in_place().map_or_else(|| FrameReply::Evaluate(self.into_message()), FrameReply::Encoded)
    }

    /// Returns the answer as one of several messages in frames.
    pub fn into_piece(self, is_last: bool) -> Piece {
        let end = End::of_message(is_last);
        match self.in_place() {
            Some(body) => Piece { body, end },
            None => Piece::of(&self.into_message(), end),
        }
    }

    /// Returns the answer as a part of one message in frames.
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

    /// Encodes the answer around the values of a read, which stay where they were gathered. `None` if the value is not a
    /// read, or its values are not contiguous.
    fn in_place(&self) -> Option<EncodedMessage> {
        let Value::Records(records) = &self.value else { return None };
        let (head, values) = records_in_place(records)?;
        let (before, behind) = kith_wire::around_records(&self.rest, &head, values.len());
        Some([before, values, behind])
    }
}
