//! The encoding of the outcome that is recorded under a write id.

use super::{
    GarbledBytes, Rest, Taken, Unreadable, begun, put_bytes, put_done, put_optional, put_point, take_done,
    whole,
};
use crate::{Outcome, RecordedOutcome, Refusal};
use kith_types::{PartitionId, delta::put_varint};

fn take_text(rest: &mut Rest<'_>) -> Taken<String> {
    let text = std::str::from_utf8(rest.bytes()?).map_err(|_| Unreadable)?;
    Ok(text.to_owned())
}

impl RecordedOutcome {
    /// Encodes the outcome for the table of outcomes.
    pub fn to_bytes(&self) -> Vec<u8> {
        begun(|out| self.put(out))
    }

    /// Decodes an outcome that [`RecordedOutcome::to_bytes`] encoded.
    ///
    /// # Errors
    /// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GarbledBytes> {
        whole("an outcome", bytes, Self::take)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.write);
        put_varint(out, self.at);
        match &self.outcome {
            Outcome::Done(done) => {
                put_varint(out, 0);
                put_done(out, *done);
            }
            Outcome::Refused(Refusal::OtherVersion { found, wanted }) => {
                put_varint(out, 1);
                put_varint(out, *found);
                put_varint(out, *wanted);
            }
            Outcome::Refused(Refusal::Absent) => put_varint(out, 2),
            Outcome::Refused(Refusal::Present { version }) => {
                put_varint(out, 3);
                put_varint(out, *version);
            }
            Outcome::Refused(Refusal::ObjectExists { id }) => {
                put_varint(out, 4);
                put_varint(out, *id);
            }
            Outcome::Refused(Refusal::UniqueTaken { field, value, id }) => {
                put_varint(out, 5);
                put_bytes(out, field.as_bytes());
                put_bytes(out, value.as_bytes());
                put_varint(out, *id);
            }
        }
        put_optional(out, self.elsewhere, |out, (partition, point)| {
            put_varint(out, u64::from(partition.0));
            put_point(out, point);
        });
    }

    pub(super) fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        Ok(Self {
            write: rest.number()?,
            at: rest.number()?,
            outcome: match rest.number()? {
                0 => Outcome::Done(take_done(rest)?),
                1 => {
                    Outcome::Refused(Refusal::OtherVersion { found: rest.number()?, wanted: rest.number()? })
                }
                2 => Outcome::Refused(Refusal::Absent),
                3 => Outcome::Refused(Refusal::Present { version: rest.number()? }),
                4 => Outcome::Refused(Refusal::ObjectExists { id: rest.number()? }),
                5 => {
                    let (field, value) = (take_text(rest)?, take_text(rest)?);
                    Outcome::Refused(Refusal::UniqueTaken { field, value, id: rest.number()? })
                }
                _ => return Err(Unreadable),
            },
            elsewhere: rest.optional(|rest| Ok((PartitionId(rest.small()?), rest.point()?)))?,
        })
    }
}
