//! The guards that a push must pass before nodes fetch its version, which is the cheapest moment to stop bad input. Also the
//! checks of a store's owner.

use crate::versions::{Guards, Refusal, StoreState, Trust, VersionEntry};

impl Guards {
    /// Checks whether `who` may drop the store, or change its definition (including its owner), its freezing or its blocks.
    /// If callers prove their identity, only the owner and administrators may.
    ///
    /// # Errors
    /// [`Refusal::OthersStore`].
    pub fn check_keeper(&self, who: &str, standing: Trust) -> Result<(), Refusal> {
        match (&self.owner, standing) {
            (Some(owner), Trust::Proven) if owner != who => {
                Err(Refusal::OthersStore { owner: owner.clone(), who: who.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Checks whether `who` may push: the owner, and administrators with a proven identity.
    pub(crate) fn check_pusher(&self, who: &str, standing: Trust) -> Result<(), Refusal> {
        self.check_keeper(who, standing)?;
        match (&self.owner, standing) {
            (Some(owner), Trust::Claimed) if owner != who => {
                Err(Refusal::NotOwner { owner: owner.clone(), who: who.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// The size of a version that a push offers, as its pusher reports it.
#[derive(Clone, Copy)]
pub(crate) struct OfferedSize {
    pub records: u64,
    pub bytes: u64,
}

impl OfferedSize {
    /// Checks the size against the guards, the served version and the quota of a store.
    pub fn check(self, state: &StoreState) -> Result<(), Refusal> {
        let Self { records, bytes } = self;
        let guards = &state.policy.guards;
        if records < guards.records_min {
            return Err(Refusal::TooFewRecords { records, records_min: guards.records_min });
        }
        if let (Some(drop_percent_max), Some(current)) = (guards.drop_percent_max, state.current())
            && is_drop(records, current, drop_percent_max)
        {
            let (records_before, before) = (current.records, current.version);
            return Err(Refusal::RecordsDropped { records, records_before, before, drop_percent_max });
        }
        let bytes_kept = state.bytes_kept();
        match state.policy.quota_bytes {
            Some(quota_bytes) if quota_bytes < bytes_kept.saturating_add(bytes) => {
                Err(Refusal::OverQuota { bytes, bytes_kept, quota_bytes })
            }
            _ => Ok(()),
        }
    }
}

fn is_drop(records: u64, current: &VersionEntry, drop_percent_max: u8) -> bool {
    let fewer = u128::from(current.records.saturating_sub(records));
    u128::from(drop_percent_max) * u128::from(current.records) < fewer * 100
}
