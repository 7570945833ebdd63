//! Encodes a sequence of replies.

/// The version of RESP that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Version 2, which a client speaks unless it asks for another.
    #[default]
    Two,
    /// Version 3, which has maps and a null type.
    Three,
}

impl Version {
    /// Returns the version number that `HELLO` uses.
    pub fn number(self) -> i64 {
        match self {
            Version::Two => 2,
            Version::Three => 3,
        }
    }
}

/// A sequence of encoded replies. An array or a map is announced first, then its elements follow.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    version: Version,
}

impl Replies {
    /// Returns an empty sequence, in this version of RESP.
    pub fn new(version: Version) -> Self {
        Self { bytes: Vec::new(), version }
    }

    /// Sets the version of RESP for the replies that follow.
    pub fn speak(&mut self, version: Version) {
        self.version = version;
    }

    /// Returns the version of RESP for the replies that follow.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the replies encoded so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all replies, and keeps at most `kept` bytes of memory.
    pub fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(kept);
    }

    /// Removes everything after the first `bytes` bytes.
    pub fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
    }

    /// Appends replies that are already encoded.
    pub fn append(&mut self, replies: &[u8]) {
        self.bytes.extend_from_slice(replies);
    }

    /// Appends a short text.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Appends an error, whose text must begin with its kind in capitals, such as `ERR`. Line breaks become spaces, and
    /// a long text is shortened.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', crate::error::bounded(text).as_bytes());
    }

    /// Appends a number.
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// Appends a value.
    pub fn bulk(&mut self, value: &[u8]) {
        self.number(b'$', value.len() as i64);
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Appends a null.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        });
    }

    /// Announces an array, whose `count` elements follow.
    pub fn array(&mut self, count: usize) {
        self.number(b'*', count as i64);
    }

    /// Announces a map, whose `count` keys and values follow. In RESP 2, it is a flat array of both.
    pub fn map(&mut self, count: usize) {
        match self.version {
            Version::Two => self.number(b'*', 2 * count as i64),
            Version::Three => self.number(b'%', count as i64),
        }
    }

    /// Announces a message of `count` elements that answers no command. Only RESP 3 has such messages.
    pub fn push(&mut self, count: usize) {
        self.number(b'>', count as i64);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn number(&mut self, kind: u8, value: i64) {
        self.bytes.push(kind);
        // `write!` would cost several times as much per value, because of its formatting machinery.
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut left = value.unsigned_abs();
        loop {
            start -= 1;
            digits[start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if value < 0 {
            self.bytes.push(b'-');
        }
        self.bytes.extend_from_slice(&digits[start..]);
        self.bytes.extend_from_slice(b"\r\n");
    }
}
