//! Static content: compressed once, with an entity tag and caching headers.

use std::{
    io::Write,
    sync::{LazyLock, OnceLock},
};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use flate2::{Compression, write::GzEncoder};

use crate::http::{accept::accepts_encoding, etag, html};

/// Shorter content is not compressed.
const MIN_COMPRESSED_BYTES: usize = 1_024;

/// Whether browsers and proxies may store content.
#[derive(Debug, Clone, Copy)]
pub(super) enum Storage {
    /// A request with the entity tag of stored content gets 304.
    Revalidate,
    /// For content with a secret.
    Forbidden,
}

type Render = Box<dyn FnOnce() -> Bytes + Send>;

/// Content that does not change while the service runs. It is rendered and compressed at the first
/// request, to keep the start fast.
pub(super) struct Asset {
    content_type: &'static str,
    body: LazyLock<Bytes, Render>,
    storage: Storage,
    /// What the document's content security policy allows; `None` if it is not a document.
    content_sources: Option<&'static str>,
    tag: OnceLock<String>,
    compressed: OnceLock<Bytes>,
}

impl Asset {
    /// Creates content that browsers do not show as a document.
    pub(super) fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self::rendered(content_type, move || body)
    }

    /// Creates content that is rendered at the first request.
    pub(super) fn rendered<B: Into<Bytes>>(
        content_type: &'static str,
        render: impl FnOnce() -> B + Send + 'static,
    ) -> Self {
        Self {
            content_type,
            body: LazyLock::new(Box::new(|| render().into())),
            storage: Storage::Revalidate,
            content_sources: None,
            tag: OnceLock::new(),
            compressed: OnceLock::new(),
        }
    }

    /// Marks the content as a document whose content security policy allows only these sources.
    pub(super) fn with_content_sources(self, content_sources: &'static str) -> Self {
        Self {
            content_sources: Some(content_sources),
            ..self
        }
    }

    pub(super) fn with_storage(self, storage: Storage) -> Self {
        Self { storage, ..self }
    }

    /// Returns a route that serves the content.
    pub(super) fn route<S: Clone + Send + Sync + 'static>(self) -> MethodRouter<S> {
        let asset = self.leak();
        get(move |headers: HeaderMap| asset.respond(headers))
    }

    /// Keeps the content until the process ends.
    pub(super) fn leak(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    pub(super) async fn respond(&'static self, request: HeaderMap) -> Response {
        let is_compressed =
            accepts_encoding(&request, "gzip") && self.body.len() >= MIN_COMPRESSED_BYTES;
        let mut response = if is_compressed {
            self.compressed().await.into_response()
        } else {
            self.body.clone().into_response()
        };
        let fixed = HeaderValue::from_static;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, fixed(self.content_type));
        if is_compressed {
            headers.insert(header::CONTENT_ENCODING, fixed("gzip"));
        }
        headers.insert(header::VARY, fixed("accept-encoding"));
        // Weak, because the compressed and the plain content have the same tag.
        if let Ok(tag) = HeaderValue::try_from(format!("W/{}", self.tag())) {
            headers.insert(header::ETAG, tag);
        }
        let cache_control = match self.storage {
            Storage::Revalidate => "public, no-cache",
            Storage::Forbidden => "no-store",
        };
        headers.insert(header::CACHE_CONTROL, fixed(cache_control));
        if let Some(content_sources) = &self.content_sources {
            html::add_security_headers(headers, content_sources);
        }
        response
    }

    fn tag(&self) -> &str {
        self.tag.get_or_init(|| etag::from_bytes(&self.body))
    }

    /// Returns the compressed content. The first request compresses it, on a thread that may block.
    async fn compressed(&'static self) -> Bytes {
        if let Some(compressed) = self.compressed.get() {
            return compressed.clone();
        }
        let compress = || self.compressed.get_or_init(|| gzip(&self.body)).clone();
        let compressed = tokio::task::spawn_blocking(compress).await;
        compressed.unwrap_or_default()
    }
}

fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default().into()
}
