//! The clients of the `object_store` crate. Only this module knows them.

use crate::objects::Access;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The time after which a silent connection is given up and its request is repeated. The limit is lower if requests are
/// repeated for less than twice as long.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The lowest such limit, whatever the settings say. A healthy store may take this long to begin an answer.
const SILENCE_MIN: Duration = Duration::from_secs(2);
/// The longest time for one request; 8 MiB then arrive at 28 KiB/s.
const REQUEST_MAX: Duration = Duration::from_secs(300);
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The pause before the first repeat. Each pause is up to twice as long as the one before.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);
/// More repeats than [`Access::retry_for`] ever allows, because time limits the repeats, not their number.
const RETRIES_MAX: usize = 1_000;

/// Returns a client of the bucket that `url` names.
pub(crate) fn client(url: &Url, access: &Access) -> object_store::Result<Arc<dyn ObjectStore>> {
    // The TLS library uses the process-wide cryptography provider. If one is installed already, it is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The library checks the time only between tries, so two tries of a silent store must fit into `retry_for`.
    let silence = (access.retry_for / 2).clamp(SILENCE_MIN, SILENCE_MAX);
    let client = ClientOptions::new()
        .with_timeout(REQUEST_MAX)
        .with_read_timeout(silence)
        .with_connect_timeout(CONNECT_MAX.min(silence))
        .with_allow_http(access.is_plain_http());
    let backoff = BackoffConfig { init_backoff: RETRY_PAUSE, max_backoff: RETRY_PAUSE_MAX, base: 2.0 };
    let retry = RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: access.retry_for };
    macro_rules! built {
        ($builder:ty) => {{
            let mut builder = <$builder>::new().with_client_options(client).with_retry(retry);
            for (name, value) in &access.settings {
                if let Ok(key) = name.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            // The URL is set last, so that no environment variable overrides the bucket.
            Arc::new(builder.with_url(url.as_str()).build()?) as Arc<dyn ObjectStore>
        }};
    }
    Ok(match url.scheme() {
        "gs" => built!(GoogleCloudStorageBuilder),
        "az" => built!(MicrosoftAzureBuilder),
        _ => built!(AmazonS3Builder),
    })
}
