//! The commands there are, as `COMMAND` describes them, and those of Redis that write.

/// What answers a command.
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

/// One command.
#[derive(Debug)]
pub(super) struct Spec {
    pub verb: Verb,
    /// In small letters.
    pub name: &'static str,
    /// Arguments with the name; below zero: at least so many.
    pub arity: i64,
    pub flags: &'static [&'static str],
    /// The first and last key among the arguments, and the step between them; zeros: none.
    pub keys: (i64, i64, i64),
    pub group: &'static str,
    pub summary: &'static str,
}

const READ: &[&str] = &["readonly", "fast"];
const PLAIN: &[&str] = &["fast"];
const NO_AUTH: &str = "no_auth";
const GREETING: &[&str] = &["noscript", "loading", "stale", "fast", NO_AUTH];
const NONE: (i64, i64, i64) = (0, 0, 0);

const fn spec(
    verb: Verb,
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    keys: (i64, i64, i64),
    group: &'static str,
    summary: &'static str,
) -> Spec {
    Spec { verb, name, arity, flags, keys, group, summary }
}

impl Spec {
    /// Whether it is answered before anybody has said who they are.
    pub fn is_greeting(&self) -> bool {
        self.flags.contains(&NO_AUTH)
    }
}

/// All of them, by name.
pub(super) const ALL: [Spec; 16] = [
    spec(Verb::Auth, "auth", -2, GREETING, NONE, "connection", "Shows a token: who asks from then on"),
    spec(Verb::Client, "client", -2, PLAIN, NONE, "connection", "Names connections, and lists them"),
    spec(Verb::Cluster, "cluster", -2, PLAIN, NONE, "cluster", "Refused: any server answers for all keys"),
    spec(Verb::Command, "command", -1, PLAIN, NONE, "server", "Describes the commands there are"),
    spec(Verb::Config, "config", -2, PLAIN, NONE, "server", "Tells the settings that Redis has too"),
    spec(Verb::Echo, "echo", 2, PLAIN, NONE, "connection", "Returns its argument"),
    spec(Verb::Exists, "exists", -2, READ, (1, -1, 1), "generic", "Counts the keys that are there"),
    spec(Verb::Get, "get", 2, READ, (1, 1, 1), "string", "The value of a key, as store:key"),
    spec(Verb::Hello, "hello", -1, GREETING, NONE, "connection", "Chooses the protocol, and shows a token"),
    spec(Verb::Info, "info", -1, PLAIN, NONE, "server", "Tells about the server"),
    spec(Verb::MultiGet, "mget", -2, READ, (1, -1, 1), "string", "The values of keys of any stores"),
    spec(Verb::Ping, "ping", -1, PLAIN, NONE, "connection", "Answers"),
    spec(Verb::Quit, "quit", -1, GREETING, NONE, "connection", "Closes the connection"),
    spec(Verb::Reset, "reset", 1, GREETING, NONE, "connection", "Makes the connection as new"),
    spec(Verb::Select, "select", 2, PLAIN, NONE, "connection", "Takes database 0, the only one"),
    spec(Verb::Strlen, "strlen", 2, READ, (1, 1, 1), "string", "The length of a value in bytes"),
];

/// Commands of Redis that write. They are told that stores are read-only, rather than that they are unknown.
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

/// The longest name of any: longer ones need not be looked for.
const NAME_BYTES_MAX: usize = 16;

/// The index in [`ALL`] of the command of that name, in whatever letters.
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    // Nearly all that are asked.
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

/// Whether Redis has a command of that name that writes.
pub(super) fn writes(name: &[u8]) -> bool {
    small(name).is_some_and(|name| WRITES.binary_search(&name.as_str()).is_ok())
}

/// A name in small letters; `None` if no command has it.
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
