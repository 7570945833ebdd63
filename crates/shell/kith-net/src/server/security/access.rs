//! The access file (`--access`) and the decisions that follow from it. It is pure: text in, decisions out.

use super::{
    caller::CallerIdentity,
    subject::{Subject, is_pattern},
};
use kith_types::ErrorCode;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tonic::Status;

/// The longest name of a subject, which is written to histories and logs.
const NAME_BYTES_MAX: usize = 128;
/// Tokens whose hash is in a file by mistake: an empty token, for example of a variable that was not set, and the token of
/// many examples.
const NO_TOKENS: [&str; 3] = ["", "\n", "test"];

/// The file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessFile {
    #[serde(default)]
    subject: Vec<SubjectEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SubjectEntry {
    name: String,
    #[serde(default)]
    token_sha256: Vec<String>,
    #[serde(default)]
    certificate: Vec<String>,
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    admin: Vec<String>,
    #[serde(default)]
    cluster: bool,
}

/// The subjects by what identifies them.
#[derive(Debug, Default)]
pub(crate) struct Access {
    tokens: HashMap<[u8; 32], Arc<Subject>>,
    /// The subjects by a name in a certificate.
    certificates: HashMap<String, Arc<Subject>>,
}

impl Access {
    /// Parses the file.
    ///
    /// # Errors
    /// A message that says what is wrong, as a clause that follows the path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: AccessFile = toml::from_str(text).map_err(|error| format!("cannot be read: {error}"))?;
        let (mut access, mut names) = (Self::default(), HashSet::new());
        for entry in file.subject {
            if !names.insert(entry.name.clone()) {
                return Err(format!(
                    "has the subject {:?} twice: give it all its rights at once",
                    entry.name
                ));
            }
            access.add(entry)?;
        }
        Ok(access)
    }

    fn add(&mut self, entry: SubjectEntry) -> Result<(), String> {
        let SubjectEntry { name, token_sha256, certificate, read, write, admin, cluster } = entry;
        if name.is_empty() {
            return Err("has a subject without a name".to_owned());
        }
        if NAME_BYTES_MAX < name.len() || name.contains(char::is_control) {
            return Err(format!(
                "has a subject whose name is longer than {NAME_BYTES_MAX} bytes or has control characters"
            ));
        }
        let stores = read.iter().chain(&write).chain(&admin);
        if let Some(bad) = stores.into_iter().find(|store| !is_pattern(store)) {
            return Err(format!(
                "gives {name:?} a right to {bad:?}, which is neither a store's name nor a prefix followed by `*`"
            ));
        }
        if token_sha256.is_empty() && certificate.is_empty() {
            return Err(format!("has no token-sha256 and no certificate of {name:?}"));
        }
        let subject = Arc::new(Subject { name: name.as_str().into(), read, write, admin, cluster });
        for text in token_sha256 {
            let hash = hash_of(&text)
                .ok_or_else(|| format!("has a token-sha256 of {name:?} that is not 64 hexadecimal digits"))?;
            if NO_TOKENS.iter().any(|token| hash == <[u8; 32]>::from(Sha256::digest(token))) {
                return Err(format!(
                    "has the hash of an empty token, or of `test`, as token-sha256 of {name:?}: make a token by `openssl rand -hex 32`"
                ));
            }
            if self.tokens.insert(hash, Arc::clone(&subject)).is_some() {
                return Err(format!("has a token of {name:?} twice"));
            }
        }
        for text in certificate {
            if self.certificates.insert(text.clone(), Arc::clone(&subject)).is_some() {
                return Err(format!("has the certificate {text:?} twice"));
            }
        }
        Ok(())
    }

    /// Whether any subject has a token.
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The subject with this identity.
    ///
    /// # Errors
    /// `unauthenticated`, `permission_denied` or `tls_required`, with what the caller can do.
    pub fn subject(&self, identity: &CallerIdentity) -> Result<&Arc<Subject>, Status> {
        let unknown =
            |message: String, help: &str| kith_wire::status(ErrorCode::Unauthenticated, message, help);
        match identity {
            CallerIdentity::Plain => Err(tls_required()),
            CallerIdentity::Nobody => Err(unknown(
                "the caller is unknown: it presented neither a token nor a certificate".to_owned(),
                "send one with --token-file, or with --tls-cert and --tls-key",
            )),
            CallerIdentity::Token(hash) => self.tokens.get(hash).ok_or_else(|| {
                unknown("the token is unknown".to_owned(), "ask the administrator of the cluster for a token")
            }),
            CallerIdentity::Certificate(names) => {
                let found = names.iter().find_map(|name| self.certificates.get(name));
                found.ok_or_else(|| {
                    let message = format!("the certificate of {} has no rights", names.join(", "));
                    let help = "list one of its names in the file of --access";
                    kith_wire::status(ErrorCode::PermissionDenied, message, help)
                })
            }
        }
    }
}

/// The error for a caller that does not use TLS on a port that requires it.
pub(super) fn tls_required() -> Status {
    let message = "this port takes TLS only";
    let help = "name the authority of its certificate: --tls-ca";
    kith_wire::status(ErrorCode::TlsRequired, message, help)
}

fn hash_of(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::security::need::{Need, Right};

    const FILE: &str = r#"
        [[subject]]
        name = "ads"
        token-sha256 = ["00000000000000000000000000000000000000000000000000000000000000aB"]
        read = ["pages", "people-*"]
        write = ["scores"]

        [[subject]]
        name = "ops"
        certificate = ["CN=ops", "dns:ops.internal"]
        admin = ["*"]

        [[subject]]
        name = "cluster"
        certificate = ["CN=kith"]
        cluster = true
    "#;

    fn token() -> CallerIdentity {
        let mut hash = [0; 32];
        hash[31] = 0xab;
        CallerIdentity::Token(hash)
    }

    fn certificate(names: &[&str]) -> CallerIdentity {
        CallerIdentity::Certificate(names.iter().map(ToString::to_string).collect())
    }

    fn code(result: Result<(), Status>) -> String {
        result.map_or_else(|status| kith_wire::detail_of(&status).code, |()| "ok".to_owned())
    }

    fn asks(identity: &CallerIdentity, need: Need) -> String {
        let access = Access::parse(FILE).unwrap();
        code(access.subject(identity).and_then(|subject| subject.check(&need)))
    }

    fn store(right: Right, name: &str) -> Need {
        Need::Store(right, name.to_owned())
    }

    #[test]
    fn rights_are_by_name_or_beginning_and_admin_implies_the_others() {
        let token = token();
        for (need, expected) in [
            (store(Right::Read, "pages"), "ok"),
            (store(Right::Read, "people-2"), "ok"),
            (store(Right::Read, "people"), "permission_denied"),
            (store(Right::Read, "pages2"), "permission_denied"),
            (store(Right::Write, "pages"), "permission_denied"),
            (store(Right::Write, "scores"), "ok"),
            (store(Right::Read, "scores"), "permission_denied"),
            (store(Right::Admin, "scores"), "permission_denied"),
            (store(Right::ReadAndWrite, "scores"), "permission_denied"),
            (store(Right::ReadAndWrite, "pages"), "permission_denied"),
            (Need::Known, "ok"),
            (Need::Administrator, "permission_denied"),
            (Need::Cluster, "permission_denied"),
        ] {
            assert_eq!(asks(&token, need.clone()), expected, "{need}");
        }
        let ops = certificate(&["CN=nobody", "dns:ops.internal"]);
        for right in [Right::Read, Right::Write, Right::ReadAndWrite, Right::Admin] {
            assert_eq!(asks(&ops, store(right, "anything")), "ok");
        }
        assert_eq!(asks(&ops, Need::Administrator), "ok");
        assert_eq!(asks(&ops, Need::Cluster), "permission_denied");
        assert_eq!(asks(&certificate(&["CN=kith"]), Need::Cluster), "ok");
        assert_eq!(asks(&certificate(&["CN=kith"]), store(Right::Admin, "pages")), "ok");
    }

    #[test]
    fn whoever_is_not_listed_learns_what_is_missing() {
        assert_eq!(asks(&CallerIdentity::Nobody, Need::Known), "unauthenticated");
        assert_eq!(asks(&CallerIdentity::Token([1; 32]), Need::Known), "unauthenticated");
        assert_eq!(asks(&certificate(&["CN=eve"]), Need::Known), "permission_denied");
        assert_eq!(asks(&certificate(&[]), Need::Known), "permission_denied");
        assert_eq!(asks(&CallerIdentity::Plain, Need::Known), "tls_required");
    }

    #[test]
    fn files_that_make_no_sense_are_refused() {
        let subject = |rest: &str| format!("[[subject]]\nname = \"x\"\n{rest}");
        let token_of = |token: &str| {
            let hash: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
            format!("token-sha256 = [\"{hash}\"]\n")
        };
        for (text, expected) in [
            (subject("certificate = [\"CN=x\"]\nreads = []\n"), "unknown field `reads`"),
            (subject(""), "no token-sha256 and no certificate"),
            (subject("token-sha256 = [\"s3cret\"]\n"), "64 hexadecimal digits"),
            (subject("certificate = [\"CN=x\"]\nread = [\"*a\"]\n"), "\"*a\""),
            (subject("certificate = [\"CN=x\"]\nread = [\"\"]\n"), "a store's name"),
            (subject("certificate = [\"CN=x\", \"CN=x\"]\n"), "twice"),
            (subject(&token_of("")), "empty token"),
            (subject(&token_of("\n")), "empty token"),
            (subject(&token_of("test")), "openssl rand"),
            (subject(&format!("certificate = [\"CN=x\"]\n{}", subject(""))), "the subject \"x\" twice"),
            (format!("[[subject]]\nname = \"{}\"\n", "x".repeat(NAME_BYTES_MAX + 1)), "longer than 128"),
            ("[[subject]]\nname = \"a\\u001b\"\n".to_owned(), "control characters"),
            ("[[subject]]\nname = \"\"\n".to_owned(), "without a name"),
            ("[[subjects]]\n".to_owned(), "subjects"),
        ] {
            let error = Access::parse(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(!Access::parse("").unwrap().has_tokens(), "nobody may do anything");
    }
}
