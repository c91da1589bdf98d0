//! Traces to an OpenTelemetry collector: the spans of rounds, views and phases, by OTLP over HTTP with
//! protobuf. Compiled only with the feature `otlp`.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

/// Time that the collector may take, and for which the end of the program waits for the last spans.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends the spans that are left when it is dropped.
pub(crate) struct Traces(SdkTracerProvider);

impl Drop for Traces {
    fn drop(&mut self) {
        // The program ends in any case; the collector may be gone.
        let _ = self.0.shutdown_with_timeout(PATIENCE);
    }
}

/// A layer that sends spans to the collector at `endpoint`, such as `http://127.0.0.1:4318`, from a
/// thread of its own. A collector that does not answer never holds up the node; its spans are lost.
///
/// # Errors
/// The fault of the endpoint.
pub(crate) fn layer<S>(endpoint: &str) -> Result<(OpenTelemetryLayer<S, SdkTracer>, Traces), String>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if !endpoint.starts_with("http://") {
        return Err(format!(
            "--otlp needs the address of a collector like http://127.0.0.1:4318, found {endpoint:?}: \
             for a collector elsewhere run one on this machine that forwards over TLS"
        ));
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(PATIENCE)
        .build()
        .map_err(|error| format!("--otlp {endpoint}: {error}"))?;
    let resource = Resource::builder()
        .with_service_name("rota")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("rota"));
    Ok((layer, Traces(provider)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;
    use std::thread;

    use tracing::info_span;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// The head and the body of the next HTTP request, which is answered with 200.
    fn request(listener: &TcpListener) -> (String, Vec<u8>) {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let count = stream.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..count]);
            let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8(read[..end].to_vec())
                .unwrap()
                .to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if read.len() >= end + 4 + length.unwrap().parse::<usize>().unwrap() {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
                return (head, read[end + 4..].to_vec());
            }
        }
    }

    #[test]
    fn spans_of_rounds_views_and_phases_reach_the_collector() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, received) = channel();
        thread::spawn(move || sender.send(request(&listener)));
        let (layer, traces) = layer(&endpoint).unwrap();
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let round = info_span!("round", round = 3);
            let view = info_span!(parent: &round, "view", view = 4);
            drop(info_span!(parent: &view, "train"));
        });
        drop(traces);
        let (head, body) = received.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(head.starts_with("post /v1/traces "), "{head}");
        assert!(head.contains("application/x-protobuf"), "{head}");
        for name in ["rota", "round", "view", "train"] {
            let found = body.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(found, "{name} is not in the request");
        }
    }

    #[test]
    fn a_collector_that_cannot_be_used_is_refused_with_an_example() {
        for wrong in ["127.0.0.1:4318", "https://collector.example"] {
            let refused = layer::<tracing_subscriber::Registry>(wrong);
            let error = refused.map(drop).unwrap_err();
            assert!(error.contains("http://127.0.0.1:4318"), "{error}");
        }
    }
}
