//! Kith: `kith-cache`.
