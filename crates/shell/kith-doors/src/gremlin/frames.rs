//! Finds the messages of a WebSocket in the bytes that arrive (RFC 6455): how long they are, and whether one has begun. The
//! WebSocket library tells only about whole messages.

/// The longest head of a frame: two bytes, a length of eight and a mask of four.
const HEAD_BYTES_MAX: usize = 14;
/// The bits of the first byte: the last frame of a message, and the kind of the frame.
const IS_LAST: u8 = 0x80;
const KIND: u8 = 0x0f;
/// From this kind on, a frame is about the connection itself: a close, a ping or a pong.
const CONTROL: u8 = 8;
/// The bits of the second byte: whether there is a mask, and the length, or how long the length is.
const IS_MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// The frames of a WebSocket, as far as their bytes have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES_MAX],
    /// How many bytes of the head of the next frame have arrived.
    filled: usize,
    /// Missing bytes of the payload of the frame that has begun.
    left: u64,
    is_control: bool,
    /// Whether further frames of a message will follow this one.
    is_in_message: bool,
    /// Bytes of messages that have arrived and were not taken.
    bytes: usize,
    /// Frames so far that are about the connection itself.
    controls: u64,
}

impl Frames {
    /// Notes that these bytes have arrived.
    pub fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if 0 < self.left {
                let came = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= came as u64;
                if !self.is_control {
                    self.bytes = self.bytes.saturating_add(came);
                }
                bytes = &bytes[came..];
                continue;
            }
            self.head[self.filled] = bytes[0];
            self.filled += 1;
            bytes = &bytes[1..];
            if self.filled == self.head_bytes() {
                self.begin();
            }
        }
    }

    /// How long the head is, as far as the bytes tell that have arrived.
    fn head_bytes(&self) -> usize {
        if self.filled < 2 {
            return 2;
        }
        let length = match self.head[1] & LENGTH {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if self.head[1] & IS_MASKED == 0 { 0 } else { 4 };
        2 + length + mask
    }

    /// The head is complete.
    fn begin(&mut self) {
        let [first, second, length @ ..] = self.head;
        self.left = match second & LENGTH {
            126 => u64::from(u16::from_be_bytes([length[0], length[1]])),
            127 => u64::from_be_bytes([
                length[0], length[1], length[2], length[3], length[4], length[5], length[6], length[7],
            ]),
            short => u64::from(short),
        };
        self.filled = 0;
        self.is_control = CONTROL <= first & KIND;
        self.controls += u64::from(self.is_control);
        // A ping may come between the frames of a message.
        if !self.is_control {
            self.is_in_message = first & IS_LAST == 0;
        }
    }

    /// Notes that a message of this length was taken.
    pub fn take(&mut self, length: usize) {
        self.bytes = self.bytes.saturating_sub(length);
    }

    /// Bytes of messages that have arrived and were not taken.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frames so far that are about the connection itself: most are pings.
    pub fn controls(&self) -> u64 {
        self.controls
    }

    /// Whether a message or another frame has begun and has not ended.
    pub fn has_begun(&self) -> bool {
        0 < self.filled || 0 < self.left || self.is_in_message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(first: u8, payload: usize) -> Vec<u8> {
        let length = match payload {
            0..126 => vec![IS_MASKED | payload as u8],
            126..65_536 => [&[IS_MASKED | 126][..], &(payload as u16).to_be_bytes()].concat(),
            _ => [&[IS_MASKED | 127][..], &(payload as u64).to_be_bytes()].concat(),
        };
        [&[first][..], &length, &[7; 4], &vec![0xff; payload]].concat()
    }

    #[test]
    fn pings_are_no_part_of_the_message_that_they_interrupt() {
        let mut frames = Frames::default();
        frames.receive(&frame(2, 300));
        assert_eq!((frames.bytes(), frames.has_begun()), (300, true), "the first part of a message");
        for _ in 0..1_000 {
            frames.receive(&frame(IS_LAST | 9, 125));
        }
        assert_eq!((frames.bytes(), frames.has_begun()), (300, true));
        frames.receive(&frame(IS_LAST, 70_000));
        assert_eq!((frames.bytes(), frames.has_begun()), (70_300, false));
        frames.receive(&frame(IS_LAST | 2, 5)[..8]);
        frames.take(70_300);
        assert_eq!((frames.bytes(), frames.has_begun()), (2, true));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_come(
            kinds in prop::collection::vec((0u8..16, prop::bool::ANY, 0usize..70_000), 1..6), piece in 1usize..5_000
        ) {
            let bytes: Vec<u8> = kinds
                .iter()
                .flat_map(|(kind, is_last, length)| frame(kind | if *is_last { IS_LAST } else { 0 }, *length))
                .collect();
            let mut frames = Frames::default();
            bytes.chunks(piece).for_each(|piece| frames.receive(piece));
            let expected: usize = kinds.iter().filter(|(kind, ..)| *kind < CONTROL).map(|(_, _, length)| length).sum();
            prop_assert_eq!(frames.bytes(), expected);
            let last = kinds.iter().rev().find(|(kind, ..)| *kind < CONTROL);
            prop_assert_eq!(frames.has_begun(), last.is_some_and(|(_, is_last, _)| !is_last));
        }
    }
}
