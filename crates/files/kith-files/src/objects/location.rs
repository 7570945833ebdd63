//! Locations: the texts with which users name places.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;
use url::Url;

/// The schemes of object stores. Each store has one scheme; its other names are not supported.
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// A folder, or a bucket with a prefix: `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///folder`, or a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A bucket of an object store and a prefix. The path does not end with `/`.
    Bucket(Url),
}

/// The reason why a text does not name a place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a valid location: {why}")]
pub struct LocationError {
    /// The text.
    pub text: String,
    /// The fault in the text.
    pub why: String,
}

impl Location {
    /// Returns a place below this one. `name` may have several parts.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Folder(folder) => Self::Folder(folder.join(name)),
            Self::Bucket(url) => {
                let mut below = url.clone();
                let path = format!("{}/{name}", url.path().trim_end_matches('/'));
                below.set_path(path.trim_end_matches('/'));
                Self::Bucket(below)
            }
        }
    }

    /// Returns the place that contains this one, and the last part of this one's name; `None` for a bucket.
    pub fn parent(&self) -> Option<(Self, String)> {
        match self {
            Self::Folder(folder) => {
                let name = folder.file_name()?.to_str()?.to_owned();
                // A bare name lies in the current folder.
                let around = folder.parent()?;
                let around = if around.as_os_str().is_empty() { Path::new(".") } else { around };
                Some((Self::Folder(around.to_owned()), name))
            }
            Self::Bucket(url) => {
                let (path, name) = url.path().trim_end_matches('/').rsplit_once('/')?;
                let mut around = url.clone();
                around.set_path(path);
                Some((Self::Bucket(around), name.to_owned())).filter(|(_, name)| !name.is_empty())
            }
        }
    }

    /// Returns the folder, if the place is on this machine.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Bucket(_) => None,
        }
    }

    /// Parses a place from an untrusted text. The text must be in the form that makes comparisons of paths safe: an
    /// absolute folder or a bucket, without `.` or `..`, empty parts, escapes or control characters.
    ///
    /// # Errors
    /// If the text names no place, or is in another form.
    pub fn plain(text: &str) -> Result<Self, LocationError> {
        let wrong = |why: &str| LocationError { text: text.to_owned(), why: why.to_owned() };
        let location: Self = text.parse()?;
        let path = text.split_once("://").map_or(text, |(_, path)| path).trim_end_matches('/');
        let odd = |c: char| c.is_control() || matches!(c, '%' | '\\' | '?' | '#');
        if path.contains(odd) {
            return Err(wrong("it has escapes or control characters"));
        }
        let relative = if matches!(location, Self::Folder(_)) { path.strip_prefix('/') } else { Some(path) };
        let relative = relative.ok_or_else(|| wrong("a folder begins with /"))?;
        if relative.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(wrong("a part of its path is empty, `.` or `..`"));
        }
        Ok(location)
    }

    /// Whether this place is `around` or lies below it, compared by whole parts of the path. Both must come from
    /// [`Location::plain`].
    pub fn is_within(&self, around: &Self) -> bool {
        match (self, around) {
            (Self::Folder(inner), Self::Folder(outer)) => inner.starts_with(outer),
            (Self::Bucket(inner), Self::Bucket(outer)) => {
                let parts = |url: &Url| -> Vec<String> {
                    url.path().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
                };
                (inner.scheme(), inner.host_str()) == (outer.scheme(), outer.host_str())
                    && parts(inner).starts_with(&parts(outer))
            }
            _ => false,
        }
    }

    /// Whether a text is a URL instead of a path. Paths that contain `://` are not supported.
    pub fn is_url(text: &str) -> bool {
        text.contains("://")
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why: String| LocationError { text: text.to_owned(), why };
        if !Self::is_url(text) {
            return if text.is_empty() {
                Err(wrong("it is empty".to_owned()))
            } else {
                Ok(Self::Folder(text.into()))
            };
        }
        let mut url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if url.scheme() == "file" {
            let folder = url
                .to_file_path()
                .map_err(|()| wrong("file:// must be followed by an absolute path".to_owned()))?;
            return Ok(Self::Folder(folder));
        }
        if !SCHEMES.contains(&url.scheme()) {
            let why = format!("{}:// is not known; s3://, gs://, az://, file:// and paths are", url.scheme());
            return Err(wrong(why));
        }
        if url.host_str().unwrap_or_default().is_empty() {
            return Err(wrong(format!("the bucket is missing: {}://BUCKET/PREFIX", url.scheme())));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err(wrong(
                "only a bucket and a path are expected; keys come from the environment".to_owned(),
            ));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self::Bucket(url))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Bucket(url) => write!(f, "{}", url.as_str().trim_end_matches('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        let location: Location = "rows".parse().unwrap();
        assert_eq!(location.parent(), Some((Location::Folder(".".into()), "rows".to_owned())));
    }

    #[test]
    fn places_are_folders_or_buckets() {
        let parse = |text: &str| text.parse::<Location>();
        for (text, shown, below) in [
            ("s3://b", "s3://b", "s3://b/people/7"),
            ("s3://b/", "s3://b", "s3://b/people/7"),
            ("gs://b/a/c//", "gs://b/a/c", "gs://b/a/c/people/7"),
            ("az://container/x", "az://container/x", "az://container/x/people/7"),
            ("file:///var/x", "/var/x", "/var/x/people/7"),
            ("x/y", "x/y", "x/y/people/7"),
        ] {
            let location = parse(text).unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(location.join("people/7").to_string(), below);
            assert_eq!(parse(&location.to_string()), Ok(location));
        }
    }

    #[test]
    fn a_place_lies_within_another_by_whole_parts() {
        let plain = |text: &str| Location::plain(text).unwrap();
        for (inner, outer, within) in [
            ("s3://b/x/y", "s3://b/x", true),
            ("s3://b/x/", "s3://b/x", true),
            ("s3://b/x", "s3://b", true),
            ("s3://b/xy", "s3://b/x", false),
            ("s3://b", "s3://b/x", false),
            ("s3://b/x", "gs://b/x", false),
            ("s3://c/x", "s3://b/x", false),
            ("/mnt/builds/7", "/mnt/builds", true),
            ("file:///mnt/builds/7", "/mnt/builds/", true),
            ("/mnt/builds2", "/mnt/builds", false),
            ("/mnt/x", "s3://mnt/x", false),
        ] {
            assert_eq!(plain(inner).is_within(&plain(outer)), within, "{inner} in {outer}");
        }
        for bad in [
            "s3://b/x/../y",
            "s3://b/./x",
            "s3://b//x",
            "s3://b/%2e%2e/x",
            "s3://b/x%2fy",
            "/a/../b",
            "a/b",
            "//a",
        ] {
            assert!(Location::plain(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "empty"),
            ("s3://", "bucket"),
            ("ftp://b/x", "ftp:// is not known"),
            ("s3://key:secret@b/x", "environment"),
            ("s3://b/x?versionId=1", "only a bucket and a path"),
            ("file://host/x", "absolute path"),
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
