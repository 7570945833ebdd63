//! The settings of a session that Kith relies on: the statements that set them, and the check of what the server made
//! of them. A server may have other defaults, and a proxy in between may answer for a session that it gave to somebody
//! else before.

use super::sql::PACKET_BYTES;
use std::collections::BTreeMap;

/// The least `max_allowed_packet` that a server may have. Everything but objects of more than a quarter of a megabyte fits
/// into it: the longest other statement names all partitions of the largest cluster.
const SERVER_PACKET_MIN: usize = 512 << 10;
/// The most bytes that a statement with a single long value takes beside that value, which is written in hexadecimal
/// digits.
const STATEMENT_REST: usize = 1 << 10;

/// The isolation level of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// The level of transactions that write.
    ReadCommitted,
    /// The level of snapshots.
    RepeatableRead,
}

/// The sizes that the server of a session accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketSizes {
    /// The most bytes of statements in one packet, unless a single statement is longer.
    pub statements: usize,
    /// The most bytes of one value.
    pub value: usize,
}

impl PacketSizes {
    /// The sizes for a server with this `max_allowed_packet`.
    pub fn of(max_allowed_packet: usize) -> Self {
        let statements = PACKET_BYTES.min(max_allowed_packet / 4 * 3);
        Self { statements, value: max_allowed_packet.saturating_sub(STATEMENT_REST) / 2 }
    }
}

impl Isolation {
    fn name(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
        }
    }

    /// The value of the variable.
    fn value(self) -> String {
        self.name().replace(' ', "-")
    }
}

/// Returns the statements that set up a session. All servers must know them.
pub(super) fn settings(isolation: Isolation, lock_wait_seconds: u64) -> [String; 3] {
    [
        "SET NAMES utf8mb4".to_owned(),
        format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", isolation.name()),
        format!(
            "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             time_zone = '+00:00', innodb_lock_wait_timeout = {lock_wait_seconds}"
        ),
    ]
}

/// Statements that fail on servers without the variable. On all others, the value of the variable is checked afterwards.
pub(super) const IF_KNOWN: [&str; 4] = [
    "SET SESSION TRANSACTION READ WRITE",
    "SET SESSION completion_type = 'NO_CHAIN'",
    "SET SESSION sql_select_limit = 18446744073709551615",
    "SET SESSION sql_safe_updates = 0",
];

/// The variables that every server has.
const NEEDED: [&str; 3] = ["autocommit", "sql_mode", "max_allowed_packet"];

/// Reads what [`check`] looks at.
pub(super) const VARIABLES: &str = "SHOW SESSION VARIABLES WHERE Variable_name IN ('autocommit', \
    'tx_isolation', 'transaction_isolation', 'sql_mode', 'time_zone', 'character_set_client', \
    'character_set_connection', 'character_set_results', 'completion_type', 'sql_select_limit', \
    'sql_safe_updates', 'tx_read_only', 'transaction_read_only', 'max_allowed_packet', 'binlog_format', 'log_bin')";

/// Checks the variables of a session, by their names in lower case. Returns the sizes that its server accepts.
///
/// # Errors
/// The variable that is wrong, why that matters, and what to do.
pub(super) fn check(
    variables: &BTreeMap<String, String>,
    isolation: Isolation,
) -> Result<PacketSizes, String> {
    if let Some(missing) = NEEDED.iter().find(|name| !variables.contains_key(**name)) {
        return Err(format!(
            "the server does not say what {missing} is: use MySQL, MariaDB or a server that does"
        ));
    }
    let level = isolation.value();
    let expected: [(&str, &str); 12] = [
        ("autocommit", "ON"),
        ("tx_isolation", &level),
        ("transaction_isolation", &level),
        ("time_zone", "+00:00"),
        ("character_set_client", "utf8mb4"),
        ("character_set_connection", "utf8mb4"),
        ("character_set_results", "utf8mb4"),
        ("completion_type", "NO_CHAIN"),
        ("sql_select_limit", "18446744073709551615"),
        ("sql_safe_updates", "OFF"),
        ("tx_read_only", "OFF"),
        ("transaction_read_only", "OFF"),
    ];
    for (name, right) in expected {
        match variables.get(name) {
            Some(found) if !is_same(found, right) => return Err(not_set(name, found, right)),
            _ => {}
        }
    }
    check_sql_mode(&variables["sql_mode"])?;
    check_binlog(variables, isolation)?;
    packet_sizes(&variables["max_allowed_packet"])
}

fn not_set(name: &str, found: &str, right: &str) -> String {
    format!(
        "{name} of the session stays {found} although Kith set it to {right}, without which its transactions are not safe: \
         find out what changes it, such as a proxy between Kith and the server"
    )
}

/// Whether two values of a variable are the same. Servers spell switches in two ways.
fn is_same(found: &str, right: &str) -> bool {
    let switch = match right {
        "ON" => "1",
        "OFF" | "NO_CHAIN" => "0",
        other => other,
    };
    found.eq_ignore_ascii_case(right) || found == switch
}

fn check_sql_mode(found: &str) -> Result<(), String> {
    let modes: Vec<String> = found.split(',').map(str::to_ascii_uppercase).collect();
    let has = |mode: &str| modes.iter().any(|it| it == mode);
    // With NO_BACKSLASH_ESCAPES, ANSI_QUOTES and the like, the statements mean the same.
    match has("STRICT_ALL_TABLES") {
        true => Ok(()),
        false => Err(not_set("sql_mode", &format!("{found:?}"), "STRICT_ALL_TABLES")),
    }
}

/// Refuses a server whose log has statements in place of rows: InnoDB then refuses every write under READ COMMITTED, though
/// not before the first one.
fn check_binlog(variables: &BTreeMap<String, String>, isolation: Isolation) -> Result<(), String> {
    let is = |name: &str, value: &str| variables.get(name).is_some_and(|found| is_same(found, value));
    if isolation == Isolation::ReadCommitted && is("log_bin", "ON") && is("binlog_format", "STATEMENT") {
        return Err(
            "binlog_format of the server is STATEMENT, with which it refuses the transactions of Kith \
                    (error 1665): set binlog_format = ROW or MIXED"
                .to_owned(),
        );
    }
    Ok(())
}

fn packet_sizes(found: &str) -> Result<PacketSizes, String> {
    let bytes = found.parse::<usize>().unwrap_or(0);
    if bytes < SERVER_PACKET_MIN {
        return Err(format!(
            "max_allowed_packet of the server is {found}, and Kith needs {SERVER_PACKET_MIN} bytes, or 4 MiB for objects \
             of every size: set max_allowed_packet = 16M"
        ));
    }
    Ok(PacketSizes::of(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
        let usual = [
            ("autocommit", "ON"),
            ("tx_isolation", "READ-COMMITTED"),
            ("sql_mode", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"),
            ("time_zone", "+00:00"),
            ("character_set_results", "utf8mb4"),
            ("completion_type", "NO_CHAIN"),
            ("sql_select_limit", "18446744073709551615"),
            ("max_allowed_packet", "16777216"),
            ("log_bin", "OFF"),
            ("binlog_format", "STATEMENT"),
        ];
        let all = usual.iter().chain(changes);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_session_is_refused_by_the_name_of_what_is_wrong() {
        let check = |changes: &[(&str, &str)]| check(&variables(changes), Isolation::ReadCommitted);
        assert_eq!(check(&[]), Ok(PacketSizes { statements: PACKET_BYTES, value: (16 << 19) - 512 }));
        assert!(check(&[("autocommit", "1"), ("log_bin", "ON"), ("binlog_format", "MIXED")]).is_ok());
        for (name, value, remedy) in [
            ("autocommit", "OFF", "ON"),
            ("tx_isolation", "REPEATABLE-READ", "READ-COMMITTED"),
            ("transaction_isolation", "SERIALIZABLE", "READ-COMMITTED"),
            ("sql_mode", "ANSI", "STRICT_ALL_TABLES"),
            ("time_zone", "SYSTEM", "+00:00"),
            ("character_set_client", "latin1", "utf8mb4"),
            ("character_set_connection", "latin1", "utf8mb4"),
            ("character_set_results", "utf16", "utf8mb4"),
            ("completion_type", "CHAIN", "NO_CHAIN"),
            ("sql_select_limit", "10", "18446744073709551615"),
            ("sql_safe_updates", "ON", "OFF"),
            ("tx_read_only", "ON", "OFF"),
            ("transaction_read_only", "1", "OFF"),
            ("max_allowed_packet", "1024", "max_allowed_packet = 16M"),
            ("max_allowed_packet", "much", "max_allowed_packet = 16M"),
        ] {
            let error = check(&[(name, value)]).expect_err(name);
            assert!(error.starts_with(name) && error.contains(remedy), "{error}");
        }
        let error = check(&[("log_bin", "ON")]).expect_err("statements are logged");
        assert!(error.contains("1665") && error.contains("binlog_format = ROW"), "{error}");
    }

    #[test]
    fn snapshots_do_not_care_how_writes_are_logged_and_need_another_level() {
        let changes = [("log_bin", "ON"), ("tx_isolation", "REPEATABLE-READ")];
        assert!(check(&variables(&changes), Isolation::RepeatableRead).is_ok());
        assert!(check(&variables(&[]), Isolation::RepeatableRead).is_err());
    }

    #[test]
    fn a_server_that_says_nothing_is_refused() {
        for name in NEEDED {
            let mut variables = variables(&[]);
            variables.remove(name);
            assert!(check(&variables, Isolation::ReadCommitted).expect_err(name).contains(name));
        }
        let mut variables = variables(&[]);
        variables.remove("completion_type");
        assert!(check(&variables, Isolation::ReadCommitted).is_ok(), "not every server has it");
    }

    #[test]
    fn packets_fit_into_what_the_server_accepts() {
        for max in [SERVER_PACKET_MIN, 1 << 20, 4 << 20, 1 << 30] {
            let PacketSizes { statements, value } = PacketSizes::of(max);
            assert!(statements < max && value * 2 + STATEMENT_REST <= max, "{max}");
        }
        assert!(kith_live::OBJECT_BYTES_MAX <= PacketSizes::of(4 << 20).value, "objects of every size");
    }
}
