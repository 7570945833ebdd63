//! Kith: `kith-routing`.
