//! Advice for the user about a refusal.

use super::Refusal;

impl Refusal {
    /// Returns what the user can do about it.
    pub fn help(&self) -> String {
        match self {
            Refusal::PushRunning { push, .. } => {
                format!("wait until {push} ends; if its router is gone, another router takes it back within seconds")
            }
            Refusal::AlreadyPushed { .. } => "nothing is left to do; a new push has a new id".to_owned(),
            Refusal::PushEnded { .. } => "see `kith store history` for how it ended; push again".to_owned(),
            Refusal::PushCancelled { .. } => {
                "nothing was swapped; push again, under a new id, if the version is wanted".to_owned()
            }
            Refusal::PushServed { .. } => "`kith store rollback` takes it back".to_owned(),
            Refusal::NoPush => {
                "`kith store history` shows how the last one ended; `kith store rollback` takes it back".to_owned()
            }
            Refusal::StoreFrozen { .. } => {
                "`kith store thaw` makes it accept pushes again; swaps and rollbacks work while it is frozen".to_owned()
            }
            Refusal::RebalanceRunning { is_stopped: true, .. } => {
                "`kith cluster rebalance --status` shows why it stopped; remove the cause and continue it with --continue, or end it with --abort; then push again".to_owned()
            }
            Refusal::RebalanceRunning { is_stopped: false, .. } => {
                "wait until it ends, or end it with `kith cluster rebalance --abort`".to_owned()
            }
            Refusal::VersionTooGreat { .. } => {
                "build it under a smaller number; if the numbers are used up, drop the store and create it again".to_owned()
            }
            Refusal::VersionAhead { .. } => {
                "give a smaller number, or none: then it is the time in milliseconds".to_owned()
            }
            Refusal::VersionNotNewer { .. } => "give a greater number, or none".to_owned(),
            Refusal::UnknownVersion { known, .. } => {
                let known: Vec<String> = known.iter().map(|version| version.0.to_string()).collect();
                format!("versions: {}", known.join(", "))
            }
            Refusal::VersionNotKept { .. } => "name one that is retained, or push it again".to_owned(),
            Refusal::VersionBlocked { .. } => "--force serves it anyway".to_owned(),
            Refusal::VersionCurrent { .. } => "nothing is left to do".to_owned(),
            Refusal::NothingOlder { .. } => {
                "`kith store versions` shows what is kept; a blocked version is served with `kith store swap --force`"
                    .to_owned()
            }
            Refusal::NotOlder { .. } => "`kith store swap` goes forward".to_owned(),
            Refusal::NotPrepared { .. } | Refusal::NotOffered { .. } => {
                "this is a defect of Kith: please report it with the log".to_owned()
            }
            Refusal::PartitionUncovered { .. } => {
                "wait until the nodes that were left out have repaired themselves".to_owned()
            }
            Refusal::TooFewRecords { .. } | Refusal::RecordsDropped { .. } => {
                "look at the input; if it is right, push with --force".to_owned()
            }
            Refusal::OverQuota { .. } => {
                "release held versions, raise --quota with `kith store alter`, or push with --force".to_owned()
            }
            Refusal::NotOwner { owner, .. } => format!("ask {owner}, or change the store's owner"),
            Refusal::OthersStore { owner, .. } => {
                format!("ask {owner}, or an administrator, who can also give the store to another with `kith store alter --owner`")
            }
        }
    }
}
