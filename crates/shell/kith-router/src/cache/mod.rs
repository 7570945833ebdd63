//! The shells of a router's caches: they fetch, wait and count, and `kith-cache` decides. `networks` keeps the networks of
//! members, `lists` the lists that fan-outs fetch, and `origin` names the versions that an entry was computed from.

mod lists;
mod networks;
mod origin;

pub(crate) use lists::CachedLists;
pub(crate) use networks::CachedNetworks;
