//! The guards that a push must pass before nodes fetch its version, which is the cheapest moment to stop bad input. Also the
//! checks of a store's owner.

use crate::versions::{Guards, Refusal, StoreState, Trust, VersionEntry, apply::Draft};

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
    fn check_pusher(&self, who: &str, standing: Trust) -> Result<(), Refusal> {
        self.check_keeper(who, standing)?;
        match (&self.owner, standing) {
            (Some(owner), Trust::Claimed) if owner != who => {
                Err(Refusal::NotOwner { owner: owner.clone(), who: who.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

impl Draft<'_> {
    pub fn check_keeper(&self) -> Result<(), Refusal> {
        self.state.policy.guards.check_keeper(self.context.who, self.context.standing)
    }

    pub fn check_pusher(&self) -> Result<(), Refusal> {
        self.state.policy.guards.check_pusher(self.context.who, self.context.standing)
    }

    pub fn check_counts(&self, records: u64, bytes: u64) -> Result<(), Refusal> {
        let guards = &self.state.policy.guards;
        if records < guards.records_min {
            return Err(Refusal::TooFewRecords { records, records_min: guards.records_min });
        }
        if let (Some(drop_percent_max), Some(current)) = (guards.drop_percent_max, self.state.current())
            && is_drop(records, current, drop_percent_max)
        {
            let (records_before, before) = (current.records, current.version);
            return Err(Refusal::RecordsDropped { records, records_before, before, drop_percent_max });
        }
        let bytes_kept = self.state.bytes_kept();
        match self.state.policy.quota_bytes {
            Some(quota_bytes) if quota_bytes < bytes_kept.saturating_add(bytes) => {
                Err(Refusal::OverQuota { bytes, bytes_kept, quota_bytes })
            }
            _ => Ok(()),
        }
    }
}

impl StoreState {
    fn bytes_kept(&self) -> u64 {
        let kept = self.versions.iter().filter(|entry| entry.state.is_kept());
        kept.map(|entry| entry.bytes).fold(0, u64::saturating_add)
    }

    /// Returns how many bytes the quota leaves for a version beside the kept ones; `None` if there is no quota. The guards
    /// only check the size that the pusher reports; a node that fetches the version can check its real size against this.
    pub fn quota_left_bytes(&self) -> Option<u64> {
        Some(self.policy.quota_bytes?.saturating_sub(self.bytes_kept()))
    }
}

fn is_drop(records: u64, current: &VersionEntry, drop_percent_max: u8) -> bool {
    let fewer = u128::from(current.records.saturating_sub(records));
    u128::from(drop_percent_max) * u128::from(current.records) < fewer * 100
}
