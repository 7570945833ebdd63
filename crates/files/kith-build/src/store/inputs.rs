//! Finds the files that inputs name: files, folders, patterns, and the same in object stores.

use crate::rows::RowSource;
use crate::{
    failure::{Failure, chain},
    place::{open_objects, refused},
};
use kith_files::objects::{Location, Objects};
use kith_types::ErrorCode;
use std::io::{self, Read};

/// Finds the files and objects of `inputs`, in order. A URL names an object, or all objects below it (names that begin with
/// `.` or `_` are skipped, as in folders), or is a pattern.
///
/// # Errors
/// `bad_input` if an input names nothing; `object_store_unreachable`.
pub(super) fn files(inputs: &[String]) -> Result<Vec<Box<dyn RowSource>>, Failure> {
    let mut found: Vec<Box<dyn RowSource>> = Vec::new();
    for input in inputs {
        if Location::is_url(input) && !input.starts_with("file://") {
            objects(input, &mut found)?;
            continue;
        }
        let path = open_objects(input)?;
        let path = path.folder().map_or_else(|| input.clone(), |path| path.display().to_string());
        let files = crate::rows::find_files(&[path]).map_err(|error| {
            let help = "name files, folders or patterns that are there";
            Failure::new(ErrorCode::BadInput, chain(&error), help)
        })?;
        found.extend(files.into_iter().map(|file| Box::new(file) as Box<dyn RowSource>));
    }
    Ok(found)
}

fn objects(input: &str, found: &mut Vec<Box<dyn RowSource>>) -> Result<(), Failure> {
    let nothing = || {
        let help = "name an object, a prefix of objects or a pattern that is there";
        Failure::new(ErrorCode::BadInput, format!("{input:?} names no object"), help)
    };
    let before = found.len();
    if let Some(at) = input.find(['*', '?', '[']) {
        let pattern = glob::Pattern::new(input).map_err(|error| {
            let message = format!("{input:?} is no valid pattern: {}", error.msg);
            Failure::new(ErrorCode::BadInput, message, "`*`, `?`, `[…]` and `**` are known")
        })?;
        let folder = input[..at].rsplit_once('/').map_or(input, |(folder, _)| folder);
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
        let below = open_objects(folder)?;
        take(&below, |name| pattern.matches_with(&below.location().join(name).to_string(), options), found)?;
    } else {
        let below = open_objects(input)?;
        match object(&below)? {
            Some((objects, name, bytes)) => {
                found.push(Box::new(ObjectRows { url: input.to_owned(), objects, object: name, bytes }));
            }
            None => take(&below, |_| true, found)?,
        }
    }
    if before == found.len() { Err(nothing()) } else { Ok(()) }
}

/// The named object, if it is a single object with nothing below it: the place around it, its name and its size in bytes.
///
/// # Errors
/// The errors of the object store.
pub fn object(named: &Objects) -> Result<Option<(Objects, String, u64)>, Failure> {
    let Some((around, name)) = named.location().parent() else { return Ok(None) };
    // This is asked first: if objects are files on a disk, some servers report an error for a folder that is requested as
    // an object.
    if named.folder().is_none() && !named.children().map_err(|error| refused(&error))?.is_empty() {
        return Ok(None);
    }
    let around = open_objects(&around.to_string())?;
    let bytes = around.size(&name).map_err(|error| refused(&error))?;
    Ok(bytes.map(|bytes| (around, name, bytes)))
}

fn take(
    below: &Objects,
    is_wanted: impl Fn(&str) -> bool,
    found: &mut Vec<Box<dyn RowSource>>,
) -> Result<(), Failure> {
    for listed in below.list().map_err(|error| refused(&error))? {
        let is_mark = listed.name.split('/').any(|part| part.starts_with(['.', '_']));
        if !is_mark && is_wanted(&listed.name) {
            let url = below.location().join(&listed.name).to_string();
            found.push(Box::new(ObjectRows {
                url,
                objects: below.clone(),
                object: listed.name,
                bytes: listed.bytes,
            }));
        }
    }
    Ok(())
}

/// An object that contains rows.
struct ObjectRows {
    /// Its name in messages.
    url: String,
    objects: Objects,
    /// Its name within `objects`.
    object: String,
    bytes: u64,
}

impl RowSource for ObjectRows {
    fn name(&self) -> &str {
        &self.url
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.objects.reader(&self.object)))
    }
}
