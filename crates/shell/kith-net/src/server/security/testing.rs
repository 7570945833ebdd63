//! Gates for tests.

use super::{Gate, gate::Files};
use crate::security::secret;
use rcgen::{CertificateParams, KeyPair};
use std::{fs, path::Path, sync::Arc};

/// Returns a gate with a certificate of its own, and with this access file, if any. Its files are written to `folder`.
pub fn gate(folder: &Path, access: Option<&str>) -> Arc<Gate> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let file = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("written");
        folder.join(name)
    };
    let secret = |name: &str, text: &str| {
        secret::testing::write(&folder.join(name), text);
        folder.join(name)
    };
    let files = Files {
        cert: file("cert.pem", &params.self_signed(&key).expect("signed").pem()),
        key: secret("key.pem", &key.serialize_pem()),
        client_ca: None,
        access: access.map(|text| file("access.toml", text)),
    };
    Arc::new(Gate::open(files).expect("its files are whole"))
}
