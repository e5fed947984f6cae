//! The collector that traces are sent to, and which of them are.

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

use crate::{config::Traces, randomness::Randomness};

/// Sends spans to a collector, in batches, from a thread of its own.
pub(super) fn connect(traces: &Traces) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", traces.endpoint))
        .build()
        .context("PERENNIAL_OTLP_ENDPOINT")?;
    let resource = Resource::builder()
        .with_service_name("perennial")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Share(traces.share))
        .with_resource(resource)
        .build())
}

/// Which spans are sent: this share of the requests, whole. The usual samplers go by the trace's id or its
/// flags, and both come from the caller, who could so have all that it sends recorded.
#[derive(Debug, Clone)]
struct Share(f64);

impl ShouldSample for Share {
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
        let ours = parent
            .as_ref()
            .filter(|parent| parent.is_valid() && !parent.is_remote());
        let drawn = || {
            let random = u32::from_le_bytes(Randomness.bytes());
            f64::from(random) < self.0 * f64::from(u32::MAX)
        };
        let sampled = ours.map_or_else(drawn, SpanContext::is_sampled);
        SamplingResult {
            decision: if sampled {
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
