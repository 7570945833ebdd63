//! The commands that this door answers, as `COMMAND` describes them, and the commands of Redis that write.

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Auth,
    Client,
    Cluster,
    Command,
    Config,
    Echo,
    Exists,
    Get,
    Hello,
    Info,
    MultiGet,
    Ping,
    Quit,
    Reset,
    Select,
    Strlen,
}

/// The description of one command.
#[derive(Debug)]
pub(super) struct Spec {
    pub verb: Verb,
    /// In lower case.
    pub name: &'static str,
    /// The number of arguments, the name included. A negative number is a minimum: `-2` is two or more.
    pub arity: i64,
    pub kind: Kind,
    pub group: &'static str,
    pub summary: &'static str,
}

/// The facts that a client has to know to route a command: when it may be sent, and which of its arguments are keys.
#[derive(Debug)]
pub(super) struct Kind {
    pub flags: &'static [&'static str],
    /// The indexes of the first and the last key among the arguments, and the step between keys; zeros if there are none.
    pub keys: (i64, i64, i64),
}

const NO_AUTH: &str = "no_auth";

/// Reads one key.
const READ: Kind = Kind { flags: &["readonly", "fast"], keys: (1, 1, 1) };
/// Reads any number of keys.
const READ_MANY: Kind = Kind { keys: (1, -1, 1), ..READ };
/// Reads no key.
const PLAIN: Kind = Kind { flags: &["fast"], keys: (0, 0, 0) };
/// Reads no key, and may be sent before authentication.
const GREETING: Kind = Kind { flags: &["noscript", "loading", "stale", "fast", NO_AUTH], ..PLAIN };

impl Spec {
    const fn new(
        verb: Verb,
        name: &'static str,
        arity: i64,
        kind: Kind,
        group: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { verb, name, arity, kind, group, summary }
    }

    /// Whether a client may send it before it has authenticated.
    pub fn is_greeting(&self) -> bool {
        self.kind.flags.contains(&NO_AUTH)
    }

    /// Whether the command may have this number of arguments, the name included.
    pub fn takes(&self, arguments: usize) -> bool {
        let got = arguments as i64;
        if self.arity < 0 { -self.arity <= got } else { got == self.arity }
    }
}

/// All commands, sorted by name.
pub(super) static ALL: [Spec; 16] = [
    Spec::new(Verb::Auth, "auth", -2, GREETING, "connection", "Authenticates the connection with a token"),
    Spec::new(Verb::Client, "client", -2, PLAIN, "connection", "Names and lists connections"),
    Spec::new(Verb::Cluster, "cluster", -2, PLAIN, "cluster", "Refused: any server answers for all keys"),
    Spec::new(Verb::Command, "command", -1, PLAIN, "server", "Describes the commands"),
    Spec::new(Verb::Config, "config", -2, PLAIN, "server", "Returns the settings that Redis has too"),
    Spec::new(Verb::Echo, "echo", 2, PLAIN, "connection", "Returns its argument"),
    Spec::new(Verb::Exists, "exists", -2, READ_MANY, "generic", "Counts the keys that exist"),
    Spec::new(Verb::Get, "get", 2, READ, "string", "Returns the value of a key, given as store:key"),
    Spec::new(
        Verb::Hello,
        "hello",
        -1,
        GREETING,
        "connection",
        "Selects the protocol version, and authenticates",
    ),
    Spec::new(Verb::Info, "info", -1, PLAIN, "server", "Describes the server"),
    Spec::new(Verb::MultiGet, "mget", -2, READ_MANY, "string", "Returns the values of keys of any stores"),
    Spec::new(Verb::Ping, "ping", -1, PLAIN, "connection", "Returns PONG, or its argument"),
    Spec::new(Verb::Quit, "quit", -1, GREETING, "connection", "Closes the connection"),
    Spec::new(Verb::Reset, "reset", 1, GREETING, "connection", "Resets the connection"),
    Spec::new(Verb::Select, "select", 2, PLAIN, "connection", "Accepts database 0, the only one"),
    Spec::new(Verb::Strlen, "strlen", 2, READ, "string", "Returns the length of a value in bytes"),
];

/// Commands of Redis that write. Their error says that stores are read-only, rather than that the command is unknown.
const WRITES: [&str; 70] = [
    "append",
    "bitfield",
    "bitop",
    "blmove",
    "blpop",
    "brpop",
    "bzpopmax",
    "bzpopmin",
    "copy",
    "decr",
    "decrby",
    "del",
    "expire",
    "expireat",
    "flushall",
    "flushdb",
    "geoadd",
    "getdel",
    "getex",
    "getset",
    "hdel",
    "hincrby",
    "hincrbyfloat",
    "hmset",
    "hset",
    "hsetnx",
    "incr",
    "incrby",
    "incrbyfloat",
    "linsert",
    "lmove",
    "lpop",
    "lpush",
    "lpushx",
    "lrem",
    "lset",
    "ltrim",
    "move",
    "mset",
    "msetnx",
    "persist",
    "pexpire",
    "pexpireat",
    "pfadd",
    "pfmerge",
    "psetex",
    "rename",
    "renamenx",
    "restore",
    "rpop",
    "rpoplpush",
    "rpush",
    "rpushx",
    "sadd",
    "set",
    "setbit",
    "setex",
    "setnx",
    "setrange",
    "smove",
    "spop",
    "srem",
    "swapdb",
    "unlink",
    "xadd",
    "xdel",
    "zadd",
    "zincrby",
    "zpopmin",
    "zrem",
];

/// The longest name of a command; longer names are unknown.
const NAME_BYTES_MAX: usize = 16;

/// The index in [`ALL`] of the command with this name, in any case.
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    // Nearly all commands have one of these names.
    match name {
        b"GET" | b"get" => return Some(GET),
        b"MGET" | b"mget" => return Some(MULTI_GET),
        _ => {}
    }
    let name = small(name)?;
    ALL.binary_search_by(|spec| spec.name.cmp(&name)).ok()
}

const GET: usize = 7;
const MULTI_GET: usize = 10;

/// Whether this is the name of a Redis command that writes.
pub(super) fn writes(name: &[u8]) -> bool {
    small(name).is_some_and(|name| WRITES.binary_search(&name.as_str()).is_ok())
}

/// A name in lower case; `None` if it is too long for a command, or not ASCII.
pub(super) fn small(name: &[u8]) -> Option<String> {
    if NAME_BYTES_MAX < name.len() || !name.is_ascii() {
        return None;
    }
    std::str::from_utf8(name).ok().map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name() {
        for (index, spec) in ALL.iter().enumerate() {
            assert_eq!(index_of(spec.name.as_bytes()), Some(index));
            assert_eq!(index_of(spec.name.to_uppercase().as_bytes()), Some(index));
            assert!(!writes(spec.name.as_bytes()));
        }
        assert_eq!((ALL[GET].verb, ALL[MULTI_GET].verb), (Verb::Get, Verb::MultiGet));
        assert!(index_of(b"gett").is_none() && index_of(b"").is_none() && index_of(&[0xff]).is_none());
    }

    #[test]
    fn every_write_is_found_by_its_name() {
        for name in WRITES {
            assert!(writes(name.as_bytes()) && writes(name.to_uppercase().as_bytes()), "{name}");
        }
    }
}
