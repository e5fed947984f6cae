//! Export of traces by OTLP, and sampling.

use anyhow::Context;
use opentelemetry::{
    KeyValue,
    trace::{Link, SpanContext, SpanKind, TraceContextExt, TraceId},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SamplingDecision, SamplingResult, SdkTracerProvider, ShouldSample},
};

use crate::{config::OtlpConfig, randomness::Randomness};

/// Creates a tracer provider that exports spans in batches from a background thread.
pub(super) fn tracer_provider(config: &OtlpConfig) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", config.endpoint))
        .build()
        .context("PERENNIAL_OTLP_ENDPOINT")?;
    let resource = Resource::builder()
        .with_service_name("perennial")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(RequestSampler {
            ratio: config.sample_ratio,
        })
        .with_resource(resource)
        .build())
}

/// Samples a random fraction of requests, each with all of its spans. The SDK's samplers trust the
/// trace id or flags that a client sends, so a client could have all of its requests recorded.
#[derive(Debug, Clone)]
struct RequestSampler {
    ratio: f64,
}

impl ShouldSample for RequestSampler {
    fn should_sample(
        &self,
        parent: Option<&opentelemetry::Context>,
        _: TraceId,
        _: &str,
        _: &SpanKind,
        _: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        let parent = parent.map(|parent| parent.span().span_context().clone());
        let local_parent = parent
            .as_ref()
            .filter(|parent| parent.is_valid() && !parent.is_remote());
        let sample_at_random = || {
            let random = u32::from_le_bytes(Randomness.bytes());
            f64::from(random) < self.ratio * f64::from(u32::MAX)
        };
        let is_sampled = local_parent.map_or_else(sample_at_random, SpanContext::is_sampled);
        SamplingResult {
            decision: if is_sampled {
                SamplingDecision::RecordAndSample
            } else {
                SamplingDecision::Drop
            },
            attributes: Vec::new(),
            trace_state: parent
                .map(|parent| parent.trace_state().clone())
                .unwrap_or_default(),
        }
    }
}
