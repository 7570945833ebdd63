//! Reasons why TLS with a peer fails, in words that help an operator to repair it.

use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// Why TLS with a peer failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFailure {
    /// The fault, as a clause about the peer ("its certificate has expired").
    pub reason: String,
    /// Advice for the operator.
    pub help: &'static str,
}

const THEIRS: &str = "give it another certificate; a process reads new files without a restart";
const OURS: &str = "give this side another certificate: --tls-cert and --tls-key";

impl TlsFailure {
    /// Returns the failure that ended a connection, if it is a TLS failure.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        inner.map(Self::of_tls)
    }

    /// Returns the failure that ended a handshake, if TLS caused it.
    pub(crate) fn of_handshake(error: &io::Error) -> Option<Self> {
        match error.kind() {
            // A port without TLS closes the connection when it receives a TLS greeting.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Some(Self {
                reason: "it closed the connection instead of answering in TLS".to_owned(),
                help: "does the port speak TLS? leave out --tls-ca if it does not",
            }),
            _ => Self::of(error),
        }
    }

    /// Translates an error of `rustls`.
    pub(crate) fn of_tls(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            Error::AlertReceived(alert) => Self::of_alert(*alert),
            Error::InvalidMessage(_) => Self {
                reason: "it answers in a protocol that is not TLS".to_owned(),
                help: "does the port speak TLS? leave out --tls-ca if it does not",
            },
            other => Self { reason: other.to_string(), help: "look at the log of the other side" },
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        let (reason, help) = match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                ("its certificate has expired".to_owned(), THEIRS)
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                ("its certificate is not valid yet".to_owned(), "look at the clocks of both sides")
            }
            CertificateError::UnknownIssuer => (
                "its certificate is not from an authority that this side trusts".to_owned(),
                "name its authority with --tls-ca",
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let detail = match error {
                    CertificateError::NotValidForNameContext { presented, .. } => {
                        format!(", only for {}", presented.join(", "))
                    }
                    _ => String::new(),
                };
                let help = "certificates name the hosts and IP addresses that others connect to";
                (format!("its certificate is not for this address{detail}"), help)
            }
            other => (format!("its certificate is not accepted: {other}"), THEIRS),
        };
        Self { reason, help }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        let (reason, help) = match alert {
            AlertDescription::CertificateRequired => (
                "it asks for a certificate, and this side sent none".to_owned(),
                "name one with --tls-cert and --tls-key",
            ),
            AlertDescription::CertificateExpired => {
                ("it refuses this side's certificate, which has expired".to_owned(), OURS)
            }
            AlertDescription::UnknownCA => {
                ("it does not trust the authority of this side's certificate".to_owned(), OURS)
            }
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown => {
                (format!("it refuses this side's certificate ({alert:?})"), OURS)
            }
            other => (format!("it ended TLS with the alert {other:?}"), "look at the log of the other side"),
        };
        Self { reason, help }
    }
}
