//! Replies, one behind the other.

/// Which RESP a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Of all clients, unless they say otherwise.
    #[default]
    Two,
    /// Has maps and a null of its own.
    Three,
}

impl Version {
    /// As `HELLO` has it.
    pub fn number(self) -> i64 {
        match self {
            Version::Two => 2,
            Version::Three => 3,
        }
    }
}

/// Replies as bytes. Arrays and maps are announced, and their parts follow.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    version: Version,
}

impl Replies {
    /// None yet, to be read as `version`.
    pub fn new(version: Version) -> Self {
        Self { bytes: Vec::new(), version }
    }

    /// How those that follow are to be read.
    pub fn speak(&mut self, version: Version) {
        self.version = version;
    }

    /// How they are read.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Those so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets all; room stays up to `kept` bytes.
    pub fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(kept);
    }

    /// Forgets what came after `bytes` bytes.
    pub fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
    }

    /// Adds replies that are bytes already.
    pub fn append(&mut self, replies: &[u8]) {
        self.bytes.extend_from_slice(replies);
    }

    /// A short text.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error. It begins with its kind in capitals, as `ERR`; what would end its line is blanked, and a long text is cut.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', crate::error::bounded(text).as_bytes());
    }

    /// A number.
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// A value.
    pub fn bulk(&mut self, value: &[u8]) {
        self.number(b'$', value.len() as i64);
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// No value.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        });
    }

    /// `count` replies follow, which are one.
    pub fn array(&mut self, count: usize) {
        self.number(b'*', count as i64);
    }

    /// `count` pairs of replies follow, which are one: a map, or a flat array where there are none.
    pub fn map(&mut self, count: usize) {
        match self.version {
            Version::Two => self.number(b'*', 2 * count as i64),
            Version::Three => self.number(b'%', count as i64),
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn number(&mut self, kind: u8, value: i64) {
        self.bytes.push(kind);
        // `write!` goes through the machinery of formatting: several times the cost, once per value.
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
