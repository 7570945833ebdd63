//! The shells of a router's caches, which `kith-session` asks through its trait `ResultCache`: they lock and count, and
//! `kith-cache` decides. `networks` keeps the networks of
//! members, `lists` the lists that fan-outs fetch, and `origin` names the versions that an entry was computed from.

mod list_question;
mod lists;
mod networks;
mod origin;
#[cfg(test)]
mod tests;

pub(crate) use lists::CachedLists;
pub(crate) use networks::CachedNetworks;
