//! The part of Thrift's compact protocol that is needed to check what a Parquet file states before a decoder trusts it.

/// The greatest nesting of structs. Parquet needs about five levels.
const DEPTH_MAX: usize = 32;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Reads bytes from the start on. Its functions return `None` if the bytes end early or are invalid.
#[derive(Clone, Copy)]
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes that were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a signed number.
    pub(super) fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn pass(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    /// Reads a struct. `take` gets each field's number, and reads the field or leaves it.
    pub(super) fn fields(&mut self, mut take: impl FnMut(i64, &mut Self) -> Option<bool>) -> Option<()> {
        self.fields_within(DEPTH_MAX, &mut take)
    }

    fn fields_within(
        &mut self,
        depth: usize,
        take: &mut dyn FnMut(i64, &mut Self) -> Option<bool>,
    ) -> Option<()> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => self.number()?,
                more => id.checked_add(more.into())?,
            };
            let taken = take(id, self)?;
            if !taken {
                self.skip(head & 0x0f, depth)?;
            }
        }
    }

    /// Skips a struct with all its fields. Fails if a list in it states more elements than there are bytes left.
    pub(super) fn pass_struct(&mut self) -> Option<()> {
        self.skip(STRUCT, DEPTH_MAX)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.pass(1),
            I16..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.pass(length)
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => count.into(),
                };
                self.elements(count, &[head & 0x0f], depth)
            }
            MAP => match self.varint()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    self.elements(count, &[kinds >> 4, kinds & 0x0f], depth)
                }
            },
            STRUCT => self.fields_within(depth, &mut |_, _| Some(false)),
            _ => None,
        }
    }

    fn elements(&mut self, count: u64, kinds: &[u8], depth: usize) -> Option<()> {
        let left = (self.bytes.len() - self.at) as u64;
        // Each element takes at least one byte, including booleans in lists.
        if left < count {
            return None;
        }
        for _ in 0..count {
            for kind in kinds {
                match *kind {
                    TRUE | FALSE => self.pass(1)?,
                    kind => self.skip(kind, depth)?,
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_claim_more_than_there_is_are_refused() {
        // Field 1 is a list of two numbers; then the struct ends.
        let good = [0x19, 0x25, 2, 4, 0];
        let mut bytes = Compact::new(&good);
        assert_eq!((bytes.pass_struct(), bytes.at()), (Some(()), good.len()));
        // The same with a list of two thousand million structs.
        let lying = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 2, 4, 0];
        assert_eq!(Compact::new(&lying).pass_struct(), None);
        let deep = [0x1c; 100];
        assert_eq!(Compact::new(&deep).pass_struct(), None);
    }
}
