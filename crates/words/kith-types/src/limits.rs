//! A caller's limits on the fan-out of one query: how many groups may take part, in all of its rounds or by their kind. They
//! are written `min`, `groups=2` or `groups=1,sync-union=max`.

use crate::FanOutKind;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The limit on the groups that may take part in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FanOutLimit {
    /// The controller decides.
    #[default]
    Auto,
    /// One group.
    Min,
    /// Every group.
    Max,
    /// This many groups, clamped to the existing ones.
    Groups(u32),
}

/// The limits of one query's rounds. `Default` leaves all of them to the controllers.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FanOutLimits {
    /// The limit of kinds without their own limit.
    all: FanOutLimit,
    by_kind: [Option<FanOutLimit>; FanOutKind::ALL.len()],
}

impl From<FanOutLimit> for FanOutLimits {
    fn from(all: FanOutLimit) -> Self {
        Self { all, ..Self::default() }
    }
}

impl FanOutLimits {
    /// Returns the same limits, with another limit for rounds of one kind.
    #[must_use]
    pub fn with(mut self, kind: FanOutKind, limit: FanOutLimit) -> Self {
        self.by_kind[kind as usize] = Some(limit);
        self
    }

    /// The limit for rounds of a kind.
    pub fn of(&self, kind: FanOutKind) -> FanOutLimit {
        self.by_kind[kind as usize].unwrap_or(self.all)
    }

    /// Whether the controllers decide about every round.
    pub fn is_auto(&self) -> bool {
        FanOutKind::ALL.iter().all(|kind| self.of(*kind) == FanOutLimit::Auto)
    }
}

/// The reason why a text is not a limit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum LimitError {
    /// This release has no such limit.
    #[error("{text:?} is none of min, max, auto, groups=N, nor KIND=LIMIT for rounds of one kind")]
    Unknown {
        /// The limit as written.
        text: String,
    },
    /// There is no such kind of fan-out.
    #[error("there is no kind of fan-out {kind:?}; kinds: {known}", known = FanOutKind::names())]
    UnknownKind {
        /// The kind as written.
        kind: String,
    },
    /// Two limits are given for the same rounds.
    #[error("{what} has two limits")]
    Twice { what: String },
}

impl FromStr for FanOutLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        match text {
            "" | "auto" => Ok(Self::Auto),
            "min" => Ok(Self::Min),
            "max" => Ok(Self::Max),
            _ => match text.strip_prefix("groups=").map(str::parse) {
                Some(Ok(groups)) if 0 < groups => Ok(Self::Groups(groups)),
                _ => Err(LimitError::Unknown { text: text.to_owned() }),
            },
        }
    }
}

impl FromStr for FanOutLimits {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut limits = Self::default();
        let mut all = None;
        for part in text.split(',') {
            let (kind, limit) = match part.split_once('=') {
                Some((kind, limit)) if kind != "groups" => {
                    let known = FanOutKind::by_name(kind);
                    let kind = known.ok_or_else(|| LimitError::UnknownKind { kind: kind.to_owned() })?;
                    (Some(kind), of_kind(limit)?)
                }
                _ => (None, part.parse()?),
            };
            let target = kind.map_or(&mut all, |kind| &mut limits.by_kind[kind as usize]);
            if target.replace(limit).is_some() {
                let what = kind.map_or("every other kind", FanOutKind::name).to_owned();
                return Err(LimitError::Twice { what });
            }
        }
        limits.all = all.unwrap_or_default();
        Ok(limits)
    }
}

/// Parses the limit of one kind. A bare number stands for that many groups.
fn of_kind(text: &str) -> Result<FanOutLimit, LimitError> {
    match text.parse() {
        Ok(groups) if 0 < groups => Ok(FanOutLimit::Groups(groups)),
        _ if text.is_empty() => Err(LimitError::Unknown { text: text.to_owned() }),
        _ => text.parse(),
    }
}

impl fmt::Display for FanOutLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
            Self::Groups(groups) => write!(f, "groups={groups}"),
        }
    }
}

impl fmt::Debug for FanOutLimits {
    /// The format that `FromStr` reads. Most kinds have no limit of their own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for FanOutLimits {
    /// The format that `FromStr` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.all)?;
        for kind in FanOutKind::ALL {
            if let Some(limit) = self.by_kind[kind as usize] {
                write!(f, ",{}={limit}", kind.name())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> FanOutLimits {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_limit_holds_for_every_kind_of_round_but_those_with_one_of_their_own() {
        let limits = read("groups=2,sync-union=max,single-key=1");
        assert_eq!(limits.of(FanOutKind::NonUnion), FanOutLimit::Groups(2));
        assert_eq!(limits.of(FanOutKind::SyncUnion), FanOutLimit::Max);
        assert_eq!(limits.of(FanOutKind::SingleKey), FanOutLimit::Groups(1));
        let only = read("sync-union=groups=3");
        assert_eq!(only.of(FanOutKind::SyncUnion), FanOutLimit::Groups(3));
        assert_eq!(only.of(FanOutKind::NonUnion), FanOutLimit::Auto);
        assert!(!only.is_auto() && read("").is_auto() && read("auto").is_auto());
        assert_eq!(only, FanOutLimits::default().with(FanOutKind::SyncUnion, FanOutLimit::Groups(3)));
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_there_is() {
        let error = |text: &str| text.parse::<FanOutLimits>().expect_err(text).to_string();
        for text in
            ["groups=0", "groups=-1", "groups=", "all", "groups=1.5", "2", "sync-union=", "sync-union=0"]
        {
            assert!(
                error(text).ends_with("nor KIND=LIMIT for rounds of one kind"),
                "{text}: {}",
                error(text)
            );
        }
        assert!(error("first-degree=1").contains("kinds: single-key, non-union, sync-union"));
        assert_eq!(error("min,max"), "every other kind has two limits");
        assert_eq!(error("sync-union=1,sync-union=1"), "sync-union has two limits");
    }

    fn limit() -> impl Strategy<Value = FanOutLimit> {
        let groups = (1..=u32::MAX).prop_map(FanOutLimit::Groups);
        prop_oneof![Just(FanOutLimit::Auto), Just(FanOutLimit::Min), Just(FanOutLimit::Max), groups]
    }

    proptest! {
        #[test]
        fn limits_are_read_as_they_are_printed(
            all in limit(),
            by_kind in prop::array::uniform6(prop::option::of(limit())),
        ) {
            let limits = FanOutLimits { all, by_kind };
            prop_assert_eq!(read(&limits.to_string()), limits);
        }
    }
}
