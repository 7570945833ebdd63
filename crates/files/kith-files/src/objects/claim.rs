//! Ownership of an object store. The folder or prefix of a cluster contains one small object that names the cluster. It
//! is written only if no such object exists, and is read before anything is written or removed there.

use crate::objects::{Objects, ObjectsError};
use kith_engine::{ObjectError, Source};
use kith_types::ErrorCode;
use kith_types::clock::millis_since_1970;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The object that names the cluster.
pub const IDENTITY_NAME: &str = "kith-cluster.json";
/// The format version of that object.
const IDENTITY_FORMAT: u32 = 1;
/// An upper bound of its size, with room to spare.
const IDENTITY_BYTES_MAX: usize = 4_096;
/// Entries that file systems and their administrators put at the top of a volume.
const FOREIGN_NAMES: [&str; 1] = ["lost+found"];

#[derive(Serialize, Deserialize)]
struct ClusterClaim {
    kith_object_store: u32,
    cluster_id: String,
    /// Milliseconds since 1970.
    created_at: u64,
}

impl ClusterClaim {
    /// Encodes the object.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers always serialize")
    }
}

/// The field that the object has in every format.
#[derive(Deserialize)]
struct AnyFormat {
    kith_object_store: u32,
}

/// The reason why a cluster cannot use a place as its object store.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ClaimError {
    /// The place belongs to another cluster.
    #[error("{location} is the object store of cluster {owner}, not of cluster {cluster}")]
    Taken {
        location: String,
        /// The cluster that it belongs to.
        owner: String,
        /// The cluster that claimed it.
        cluster: String,
    },
    /// The place lies inside the object store of another cluster.
    #[error("{location} lies in the object store of cluster {owner}, at {around}")]
    Inside {
        location: String,
        /// The cluster that the object store belongs to.
        owner: String,
        /// The place of that object store.
        around: String,
    },
    /// The place belongs to no cluster, but is not empty.
    #[error("{location} belongs to no cluster, but is not empty: it contains {found:?}")]
    Occupied {
        location: String,
        /// The name of something in it.
        found: String,
    },
    /// The object that names the cluster is malformed.
    #[error("the owner of {location} is unknown, because its {IDENTITY_NAME} is damaged")]
    Damaged { location: String },
    /// The object that names the cluster has another format.
    #[error("{IDENTITY_NAME} of {location} has format {got}, this release reads format {IDENTITY_FORMAT}")]
    OtherFormat { location: String, got: u32 },
    /// The place cannot be read or written.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl ClaimError {
    /// Returns the stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Objects(_) => ErrorCode::ObjectStoreUnreachable,
            _ => ErrorCode::ObjectStoreTaken,
        }
    }

    /// Returns a text that says what to do about the error.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Objects(error) => error.help(),
            Self::Damaged { .. } => {
                "nothing was written or removed; restore the object, or give the cluster a prefix or folder of its own"
            }
            Self::OtherFormat { .. } => {
                "nothing was written or removed; use the release that wrote it, or give the cluster a prefix or folder of its own"
            }
            _ => {
                "nothing was written or removed; give each cluster a prefix or folder of its own, empty at first"
            }
        }
    }
}

impl Objects {
    /// Claims this place for the cluster. Does nothing if the cluster owns it already; otherwise the place must be
    /// empty and belong to no cluster.
    ///
    /// # Errors
    /// [`ClaimError`]; nothing was then written.
    pub fn claim(&self, cluster: &str) -> Result<(), ClaimError> {
        if self.is_of(cluster)? {
            return Ok(());
        }
        self.check_unowned()?;
        let identity = ClusterClaim {
            kith_object_store: IDENTITY_FORMAT,
            cluster_id: cluster.to_owned(),
            created_at: millis_since_1970(),
        };
        match self.put_new(IDENTITY_NAME, identity.encode()) {
            // Another process was faster, perhaps one of this cluster.
            Ok(()) | Err(ObjectsError::Taken { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if self.is_of(cluster)? {
            return Ok(());
        }
        Err(ClaimError::Damaged { location: self.location().to_string() })
    }

    /// Whether the place belongs to this cluster; `false` if it belongs to none. Another owner is an error.
    fn is_of(&self, cluster: &str) -> Result<bool, ClaimError> {
        match self.owner()? {
            None => Ok(false),
            Some(owner) if owner == cluster => Ok(true),
            Some(owner) => {
                let (location, cluster) = (self.location().to_string(), cluster.to_owned());
                Err(ClaimError::Taken { location, owner, cluster })
            }
        }
    }

    /// Returns the cluster that the place belongs to; `None` if it belongs to none or does not exist. Writes nothing.
    ///
    /// # Errors
    /// [`ClaimError`]: the place cannot be read, or the object that names the cluster is malformed.
    pub fn owner(&self) -> Result<Option<String>, ClaimError> {
        let mut bytes = vec![0; IDENTITY_BYTES_MAX];
        let count = match self.read(IDENTITY_NAME, 0, &mut bytes) {
            Ok(count) => count,
            Err(ObjectError::Missing { .. }) => return Ok(None),
            Err(error) => {
                let object = self.location().join(IDENTITY_NAME).to_string();
                return Err(ObjectsError::Failed { object, source: Box::new(error) }.into());
            }
        };
        let location = || self.location().to_string();
        match serde_json::from_slice(&bytes[..count]) {
            Ok(AnyFormat { kith_object_store: got }) if got != IDENTITY_FORMAT => {
                return Err(ClaimError::OtherFormat { location: location(), got });
            }
            _ => {}
        }
        let identity: Result<ClusterClaim, _> = serde_json::from_slice(&bytes[..count]);
        let identity = identity.map_err(|_| ClaimError::Damaged { location: location() })?;
        Ok(Some(identity.cluster_id))
    }

    fn check_unowned(&self) -> Result<(), ClaimError> {
        let is_foreign = |name: &&String| name.starts_with('.') || FOREIGN_NAMES.contains(&name.as_str());
        if let Some(found) = self.children()?.iter().find(|name| !is_foreign(name)) {
            let (location, found) = (self.location().to_string(), found.clone());
            return Err(ClaimError::Occupied { location, found });
        }
        let mut around = self.clone();
        while let Some(next) = around.parent() {
            around = next;
            if let Some(owner) = around.owner()? {
                let (location, around) = (self.location().to_string(), around.location().to_string());
                return Err(ClaimError::Inside { location, owner, around });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Access;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn place(folder: &Path) -> Objects {
        Objects::open(&crate::objects::Location::Folder(folder.to_owned()), &Access::from_environment())
            .unwrap()
    }

    #[test]
    fn an_object_store_has_one_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let root = place(&folder.path().join("objects"));
        root.claim("a").unwrap();
        root.claim("a").unwrap();
        let taken = root.claim("b").unwrap_err();
        assert_eq!(taken.code(), ErrorCode::ObjectStoreTaken);
        assert!(taken.to_string().contains("cluster a, not of cluster b"), "{taken}");
        fs::create_dir_all(folder.path().join("objects/people/values")).unwrap();
        let inside = root.join("people/values").claim("b").unwrap_err();
        assert!(matches!(inside, ClaimError::Inside { .. }), "{inside}");
        root.claim("a").unwrap();
    }

    #[test]
    fn golden_bytes_of_the_object_that_names_the_cluster() {
        let identity = ClusterClaim {
            kith_object_store: IDENTITY_FORMAT,
            cluster_id: "c1".to_owned(),
            created_at: 1_700_000_000_000,
        };
        let bytes = kith_sim::golden::file("kith-cluster.json", &identity.encode());
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(IDENTITY_NAME), bytes).unwrap();
        assert_eq!(place(folder.path()).owner().unwrap().as_deref(), Some("c1"));
        place(folder.path()).claim("c1").unwrap();
    }

    #[test]
    fn a_folder_that_is_taken_is_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let new = folder.path().join("objects");
        place(&new).claim("a").unwrap();
        assert_eq!((mode(&new), mode(&new.join(IDENTITY_NAME))), (0o700, 0o600));
        // A folder that the user made keeps its mode.
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o750)).unwrap();
        place(&shared).claim("b").unwrap();
        assert_eq!((mode(&shared), mode(&shared.join(IDENTITY_NAME)) & 0o027), (0o750, 0o000));
    }

    #[test]
    fn a_place_with_something_in_it_is_nobodys_to_take() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lost+found")).unwrap();
        fs::create_dir_all(folder.path().join("people/values/7")).unwrap();
        let occupied = place(folder.path()).claim("a").unwrap_err();
        assert!(matches!(&occupied, ClaimError::Occupied { found, .. } if found == "people"), "{occupied}");
        fs::remove_dir_all(folder.path().join("people")).unwrap();
        place(folder.path()).claim("a").unwrap();
        fs::write(folder.path().join(IDENTITY_NAME), "{").unwrap();
        assert!(matches!(place(folder.path()).claim("a"), Err(ClaimError::Damaged { .. })));
        for got in [0, 2] {
            let other = format!(r#"{{"kith_object_store":{got},"of":"a"}}"#);
            fs::write(folder.path().join(IDENTITY_NAME), other).unwrap();
            let error = place(folder.path()).claim("a").unwrap_err().to_string();
            assert!(error.ends_with(&format!(" has format {got}, this release reads format 1")), "{error}");
        }
    }
}
