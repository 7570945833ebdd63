//! When certificates expire, for the metric with which alerts warn in time.

use crate::security::pem;
use std::path::PathBuf;
use x509_cert::{Certificate, der::Decode};

/// Sets the metric of each file to the time at which the first of its certificates expires.
pub(super) fn show(files: &[(&'static str, PathBuf)]) {
    for (option, path) in files {
        let Ok(certificates) = pem::certificates(option, path) else { continue };
        let first = certificates.iter().filter_map(|der| expires(der)).min();
        if let Some(first) = first {
            metrics::gauge!("kith_server_certificate_expiry_timestamp_seconds", "file" => *option)
                .set(first as f64);
        }
    }
}

/// The end of a certificate's validity, in seconds since 1970; `None` if it cannot be parsed.
fn expires(der: &[u8]) -> Option<u64> {
    let certificate = Certificate::from_der(der).ok()?;
    Some(certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn the_end_of_the_validity_is_read() {
        let mut params = CertificateParams::new(vec!["ads.internal".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2030, 1, 2);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(expires(certificate.der()), Some(1_893_542_400));
        assert_eq!(expires(b"not one"), None);
    }
}
