//! Commands that describe the server: `HELLO`, `INFO`, `COMMAND`, `CONFIG GET`.

use super::{
    commands::{self, Spec},
    host::Host,
    refused::{ErrorReply, shown, unknown_subcommand, wrong_number_of},
    round::Round,
};
use kith_wire::resp::{Command, Replies, Version};

/// The name and release of this server in the reply to `HELLO`.
const SERVER: &str = "kith";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The reply to `HELLO`.
pub(super) fn hello(version: Version, client: u64, replies: &mut Replies) {
    replies.map(7);
    let texts = [("server", SERVER), ("version", RELEASE), ("mode", "standalone"), ("role", "master")];
    for (name, text) in texts {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }
    for (name, number) in [("proto", version.number()), ("id", client as i64)] {
        replies.bulk(name.as_bytes());
        replies.integer(number);
    }
    replies.bulk(b"modules");
    replies.array(0);
}

/// `INFO [section…]`: the named sections, or all of them. An unknown section is empty, as in Redis.
pub(super) fn info(command: &Command<'_>, round: &mut Round, host: &dyn Host) {
    let named = |wanted: &str| command.rest().any(|asked| asked.eq_ignore_ascii_case(wanted.as_bytes()));
    let is_all = command.len() == 1 || ["all", "default", "everything"].into_iter().any(named);
    let sections = host.sections().into_iter().filter(|(name, _)| is_all || named(name));
    let sections = sections.map(|(name, lines)| format!("# {name}\r\n{lines}"));
    let text = sections.collect::<Vec<_>>().join("\r\n");
    round.reply(|replies| replies.bulk(text.as_bytes()));
}

/// `CONFIG GET pattern…`: the names and values of the settings that match a pattern.
pub(super) fn config(command: &Command<'_>, round: &mut Round, host: &dyn Host) -> Result<(), ErrorReply> {
    let asked = command.get(1).unwrap_or_default();
    match (commands::small(asked).as_deref(), command.len()) {
        (Some("get"), 2) => return Err(wrong_number_of("config|get")),
        (Some("get"), _) => {}
        (Some("set" | "rewrite" | "resetstat"), _) => {
            let help = "change the settings file of the process: docs/operating/settings.md";
            return Err(format!("ERR CONFIG {} is not possible here ({help})", shown(asked)));
        }
        _ => return Err(unknown_subcommand(asked)),
    }
    let patterns: Vec<glob::Pattern> = command
        .rest()
        .skip(1)
        .filter_map(|pattern| {
            glob::Pattern::new(&std::str::from_utf8(pattern).ok()?.to_ascii_lowercase()).ok()
        })
        .collect();
    let mut found = host.settings();
    found.retain(|(name, _)| patterns.iter().any(|pattern| pattern.matches(name)));
    round.reply(|replies| {
        replies.map(found.len());
        for (name, value) in &found {
            replies.bulk(name.as_bytes());
            replies.bulk(value.as_bytes());
        }
    });
    Ok(())
}

/// `COMMAND [COUNT|DOCS|INFO|LIST]`.
pub(super) fn command(command: &Command<'_>, round: &mut Round) -> Result<(), ErrorReply> {
    let named =
        || command.rest().skip(1).map(|name| commands::index_of(name).map(|index| &commands::ALL[index]));
    let all = command.len() <= 2;
    let asked = command.get(1).unwrap_or_default();
    match commands::small(asked).as_deref() {
        Some("") => round.reply(|replies| {
            replies.array(commands::ALL.len());
            commands::ALL.iter().for_each(|spec| describe(spec, replies));
        }),
        Some("count") if all => round.reply(|replies| replies.integer(commands::ALL.len() as i64)),
        Some("list") if all => round.reply(|replies| {
            replies.array(commands::ALL.len());
            commands::ALL.iter().for_each(|spec| replies.bulk(spec.name.as_bytes()));
        }),
        Some("info") => {
            let found: Vec<Option<&Spec>> =
                if all { commands::ALL.iter().map(Some).collect() } else { named().collect() };
            round.reply(|replies| {
                replies.array(found.len());
                found.into_iter().for_each(|spec| match spec {
                    Some(spec) => describe(spec, replies),
                    None => replies.null(),
                });
            });
        }
        Some("docs") => {
            let found: Vec<&Spec> =
                if all { commands::ALL.iter().collect() } else { named().flatten().collect() };
            round.reply(|replies| {
                replies.map(found.len());
                found.into_iter().for_each(|spec| document(spec, replies));
            });
        }
        Some(name @ ("count" | "list")) => return Err(wrong_number_of(&format!("command|{name}"))),
        _ => return Err(unknown_subcommand(asked)),
    }
    Ok(())
}

/// One entry of `COMMAND` and `COMMAND INFO`.
fn describe(spec: &Spec, replies: &mut Replies) {
    replies.array(6);
    replies.bulk(spec.name.as_bytes());
    replies.integer(spec.arity);
    replies.array(spec.kind.flags.len());
    spec.kind.flags.iter().for_each(|flag| replies.simple(flag));
    let (first, last, step) = spec.kind.keys;
    [first, last, step].into_iter().for_each(|number| replies.integer(number));
}

/// One entry of `COMMAND DOCS`.
fn document(spec: &Spec, replies: &mut Replies) {
    replies.bulk(spec.name.as_bytes());
    replies.map(3);
    for (name, text) in [("summary", spec.summary), ("since", RELEASE), ("group", spec.group)] {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }
}
