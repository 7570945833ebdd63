//! The names in a certificate: its subject as RFC 4514 writes it (`CN=ads,O=Acme`), and its DNS names and URIs with a
//! prefix (`dns:ads.internal`, `uri:spiffe://acme/ads`).

use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// The names in a certificate whose chain was verified already; empty if it cannot be parsed.
pub(super) fn names_of(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else { return Vec::new() };
    let subject = certificate.tbs_certificate().subject().to_string();
    let mut names: Vec<String> = (!subject.is_empty()).then_some(subject).into_iter().collect();
    if let Ok(Some((_, SubjectAltName(others)))) = certificate.tbs_certificate().get_extension() {
        names.extend(others.iter().filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(format!("dns:{name}")),
            GeneralName::UniformResourceIdentifier(name) => Some(format!("uri:{name}")),
            _ => None,
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    #[test]
    fn subject_and_other_names_are_read() {
        let mut params = CertificateParams::new(vec!["ads.internal".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::URI("spiffe://acme/ads".try_into().unwrap()));
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "ads");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(names_of(certificate.der()), ["CN=ads", "dns:ads.internal", "uri:spiffe://acme/ads"]);
        assert!(names_of(b"not one").is_empty());
    }
}
