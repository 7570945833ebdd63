//! The places outside of the cluster's object store from which versions may be read.

use kith_files::objects::{Location, LocationError};
use kith_net::server::security::{is_pattern, matches};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};
use thiserror::Error;

/// A place outside of the cluster's object store from which versions of some stores may be read: `[STORES=]PLACE`. STORES are
/// names or prefixes of names that end in `*`, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFrom {
    /// As in the access file: a name, or a prefix of names followed by `*`.
    stores: Vec<String>,
    location: Location,
}

impl ReadFrom {
    /// Whether a version of `store` may be read from `location`.
    fn allows(&self, store: &str, location: &Location) -> bool {
        self.stores.iter().any(|pattern| matches(pattern, store)) && location.is_within(&self.location)
    }
}

impl FromStr for ReadFrom {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | ',');
        let (stores, location) = match text.split_once('=') {
            Some((stores, location)) if stores.chars().all(is_name) => (stores, location),
            _ => ("*", text),
        };
        let stores: Vec<String> = stores.split(',').map(str::to_owned).collect();
        if !stores.iter().all(|pattern| is_pattern(pattern)) {
            let why = "before `=` there must be stores, by name or by a prefix followed by `*`".to_owned();
            return Err(LocationError { text: text.to_owned(), why });
        }
        Ok(Self { stores, location: Location::plain(location)? })
    }
}

impl fmt::Display for ReadFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.stores.join(","), self.location)
    }
}

impl Serialize for ReadFrom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReadFrom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The reason why a version is not read from the place that a push names.
#[derive(Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum UrlRefused {
    /// The text names no place.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// The place is in the cluster's own object store.
    #[error("{url} lies in the object store of this cluster, where each store has a place of its own")]
    Own { url: String },
    /// The configuration does not allow this store to be read from there.
    #[error("versions of store {store:?} are not read from {url}")]
    NotListed { url: String, store: String },
}

/// Checks the place that a push names against those that the configuration lists for its store. Sends no request to the place.
///
/// # Errors
/// [`UrlRefused`].
pub fn check_url(
    url: &str,
    store: &str,
    object_store: &Location,
    read_from: &[ReadFrom],
) -> Result<(), UrlRefused> {
    let location = Location::plain(url)?;
    // A folder may have several names, so the canonical ones are compared as well.
    let real = |location: &Location| match location.folder().map(std::fs::canonicalize) {
        Some(Ok(folder)) => Location::Folder(folder),
        _ => location.clone(),
    };
    let overlap = |a: &Location, b: &Location| a.is_within(b) || b.is_within(a);
    if overlap(&location, object_store) || overlap(&real(&location), &real(object_store)) {
        return Err(UrlRefused::Own { url: url.to_owned() });
    }
    if read_from.iter().any(|allowed| allowed.allows(store, &location)) {
        return Ok(());
    }
    Err(UrlRefused::NotListed { url: url.to_owned(), store: store.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_only_from_places_that_are_listed_for_its_store() {
        let own: Location = "s3://kith/shared".parse().unwrap();
        let listed: Vec<ReadFrom> =
            ["people,person-*=s3://builds/people", "s3://builds/all", "s3://kith", "/mnt/builds"]
                .map(|text| text.parse().unwrap())
                .into();
        let check = |url: &str, store: &str| check_url(url, store, &own, &listed);
        for (url, store) in [
            ("s3://builds/people/7", "people"),
            ("s3://builds/people", "person-1"),
            ("s3://builds/all/x/7", "scores"),
            ("s3://kith/other/7", "scores"),
            ("/mnt/builds/7", "scores"),
        ] {
            assert_eq!(check(url, store), Ok(()), "{url}, {store}");
        }
        for (url, store) in [
            ("s3://builds/people/7", "scores"),
            ("s3://builds/people2/7", "people"),
            ("s3://elsewhere/people/7", "people"),
            ("s3://builds/all/../people/7", "scores"),
            ("s3://builds/all/%2e%2e/people/7", "scores"),
            ("s3://kith/shared/secrets/values/7", "scores"),
            ("s3://kith/shared", "scores"),
            ("s3://kith", "scores"),
            ("/etc", "scores"),
            ("mnt/builds", "scores"),
            ("/mnt/builds/../../etc", "scores"),
            ("file:///etc", "scores"),
        ] {
            assert!(check(url, store).is_err(), "{url}, {store}");
        }
        assert!(check_url("s3://builds/all/7", "people", &own, &[]).is_err(), "nothing is listed");
    }

    #[test]
    fn another_name_of_the_object_store_is_the_object_store() {
        let folder = tempfile::tempdir().unwrap();
        let (own, alias) = (folder.path().join("objects"), folder.path().join("builds"));
        std::fs::create_dir_all(own.join("secrets/values/7")).unwrap();
        std::os::unix::fs::symlink(&own, &alias).unwrap();
        let listed: [ReadFrom; 1] = [alias.to_str().unwrap().parse().unwrap()];
        let url = alias.join("secrets/values/7");
        let checked = check_url(url.to_str().unwrap(), "scores", &Location::Folder(own), &listed);
        assert!(matches!(checked, Err(UrlRefused::Own { .. })), "{checked:?}");
    }

    #[test]
    fn what_is_listed_comes_back_as_it_was_written() {
        for (text, shown) in [
            ("s3://b/x", "*=s3://b/x"),
            ("a,b-*=s3://b/x", "a,b-*=s3://b/x"),
            ("*=/mnt/a=b", "*=/mnt/a=b"),
            ("/mnt/a=b", "*=/mnt/a=b"),
        ] {
            let read: ReadFrom = text.parse().unwrap();
            assert_eq!((read.to_string(), shown.parse()), (shown.to_owned(), Ok(read)));
        }
        for bad in ["", "people=", "*a=s3://b", "people=relative", "a,=s3://b"] {
            assert!(bad.parse::<ReadFrom>().is_err(), "{bad}");
        }
    }
}
